// Whatever a client sends is answered: a reply, or a 4xx in the envelope; never a 5xx, never a hang.
import fc from "fast-check";
import { expect, it } from "vitest";
import { ChatRequest } from "../../../src/api/dialects/chat/chat.schema.ts";
import { MessagesRequest } from "../../../src/api/dialects/messages/messages.schema.ts";
import { ResponsesRequest } from "../../../src/api/dialects/responses/responses.schema.ts";
import { TokenRequest } from "../../../src/api/dialects/tokens/tokens.schema.ts";
import { sharedServer } from "../../support/shared-server.ts";

const server = sharedServer();

const fields = Object.keys(ChatRequest.properties).filter((field) => field !== "messages");
const nasty = fc.constantFrom<unknown>(
  null, true, false, 0, -1, 1, 2, 1.5, 1e308, -1e308, 2 ** 53, "", "0", "true", "x", "\u0000", "\ud800", [], [[]], {}, [null], [1], ["a"],
  { type: "text" }, { type: "json_object" }, { include_usage: true }, { json: "{}" }, { regex: "a{1000000}" }, { "1": 1 }, { __proto__: 1 },
  { max_pattern_size: 1e9, min_count: 2 }, "{{ messages }}", "{% for i in range(10) %}{{ i }}{% endfor %}",
); // biome-ignore format: a pool
const value = fc.oneof({ weight: 3, arbitrary: nasty }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) });
const message = fc.oneof(
  fc.record({
    role: fc.constantFrom("user", "assistant", "system", "tool", "x"),
    content: fc.oneof(fc.string(), value),
  }),
  fc.record({ role: fc.constant("assistant"), tool_calls: value, reasoning: value }, { requiredKeys: ["role"] }),
  value,
);
const body = fc.record({
  messages: fc.oneof(fc.array(message, { maxLength: 3 }), value),
  options: fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 4 }),
});

const OPENAI_ERROR = ["message", "type", "param", "code"];

async function expectAnswer(path: string, body: object, errorKeys = OPENAI_ERROR): Promise<void> {
  const text = JSON.stringify(body);
  const response = await server.post(path, text);
  const answer = await response.text();
  expect([200, 400, 404], `${text}\n${answer}`).toContain(response.status);
  if (response.status !== 200) {
    expect(Object.keys(JSON.parse(answer).error)).toEqual(errorKeys);
  }
}

const numRuns = Number(process.env.FUZZ_RUNS ?? 400);

it("answers every request with a reply or a 4xx", async () => {
  await fc.assert(
    fc.asyncProperty(body, ({ messages, options }) =>
      expectAnswer("/v1/chat/completions", { max_tokens: 3, ...options, messages }),
    ),
    { numRuns },
  );
  expect(server.service.admission.active).toBe(0);
});

it("answers every request for tokens with a reply or a 4xx", async () => {
  const { sampling_params: sampling, ...others } = TokenRequest.properties;
  const request = fc.record({
    token_ids: fc.oneof(fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 5 }), value),
    params: fc.oneof(fc.dictionary(fc.constantFrom(...Object.keys(sampling.properties)), value, { maxKeys: 4 }), value),
    options: fc.dictionary(fc.constantFrom(...Object.keys(others)), value, { maxKeys: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(request, ({ token_ids, params, options }) => {
      const isPlain = typeof params === "object" && params !== null && !Array.isArray(params);
      const sampling_params = isPlain ? { max_tokens: 3, ...params } : params;
      return expectAnswer("/inference/v1/generate", { token_ids, ...options, sampling_params });
    }),
    { numRuns },
  );
  expect(server.service.admission.active).toBe(0);
});

/** Objects with some of these fields, all of them nasty, and perhaps a type. */
const shaped = (types: readonly string[], keys: readonly string[]) =>
  fc
    .tuple(
      fc.constantFrom(...types),
      fc.dictionary(fc.constantFrom(...keys), fc.oneof(fc.string(), value), { maxKeys: 4 }),
    )
    .map(([type, more]) => (type === "" ? more : { ...more, type }));

it("answers every request for a response with a reply or a 4xx", async () => {
  const { input: _, ...others } = ResponsesRequest.properties;
  const part = shaped(["", "input_text", "output_text", "refusal", "input_image", "x"], ["text", "refusal"]);
  const item = shaped(
    ["", "message", "function_call", "function_call_output", "reasoning", "item_reference", "web_search_call"],
    ["id", "call_id", "name", "arguments", "output", "summary", "encrypted_content"],
  );
  const said = fc.record({
    role: fc.constantFrom("user", "assistant", "x"),
    content: fc.array(part, { maxLength: 2 }),
  });
  const request = fc.record({
    input: fc.oneof(fc.array(fc.oneof(item, said, value), { maxLength: 3 }), fc.string(), value),
    options: fc.dictionary(fc.constantFrom(...Object.keys(others)), value, { maxKeys: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(request, ({ input, options }) =>
      expectAnswer("/v1/responses", { max_output_tokens: 3, ...options, input }),
    ),
    { numRuns },
  );
  expect(server.service.admission.active).toBe(0);
});

it("answers every request for a message with a reply or a 4xx", async () => {
  const { messages: _, ...others } = MessagesRequest.properties;
  const block = shaped(
    ["", "text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "x"],
    ["text", "thinking", "id", "name", "input", "tool_use_id", "content"],
  );
  const said = fc.record({
    role: fc.constantFrom("user", "assistant", "system", "x"),
    content: fc.oneof(fc.array(fc.oneof(block, value), { maxLength: 3 }), fc.string(), value),
  });
  const request = fc.record({
    messages: fc.oneof(fc.array(said, { maxLength: 3 }), value),
    options: fc.dictionary(fc.constantFrom(...Object.keys(others)), value, { maxKeys: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(request, ({ messages, options }) =>
      expectAnswer("/v1/messages", { max_tokens: 3, ...options, messages }, ["type", "message"]),
    ),
    { numRuns },
  );
  expect(server.service.admission.active).toBe(0);
});

it("answers any bytes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer test-key", "content-type": "application/json" },
        body: bytes as Uint8Array<ArrayBuffer>,
      });
      expect(response.status).toBe(400);
    }),
    { numRuns: 100 },
  );
});
