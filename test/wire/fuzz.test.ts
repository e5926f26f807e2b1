// Whatever a client sends is answered: a reply, or a 4xx in the envelope; never a 5xx, never a hang.
import fc from "fast-check";
import { expect, it } from "vitest";
import { ChatRequest } from "../../src/api/chat/chat.schema.ts";
import { TokenRequest } from "../../src/api/generate/generate.schema.ts";
import { sharedServer } from "./shared-server.ts";

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

async function expectAnswer(path: string, body: object): Promise<void> {
  const text = JSON.stringify(body);
  const response = await server.post(path, text);
  const answer = await response.text();
  expect([200, 400, 404], `${text}\n${answer}`).toContain(response.status);
  if (response.status !== 200) {
    expect(Object.keys(JSON.parse(answer).error)).toEqual(["message", "type", "param", "code"]);
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
