// POST /v1/responses over HTTP: translation, events, refusals. What is kept: responses-stored.test.ts. The unmodified SDKs: test/clients.
import { describe, expect, it, vi } from "vitest";
import { ResponseObject } from "../../../src/api/dialects/responses/responses.schema.ts";
import { expectShape, sharedServer } from "../../support/shared-server.ts";
import { API_KEY, type Loose, startTestServer } from "../../support/test-server.ts";
import { add, asking, CALL, responsesServer } from "./responses-requests.ts";

const server = responsesServer();
const { create, events, promptOf, refuse } = asking(server);

describe("a whole response", () => {
  it("has every field, and usage", async () => {
    const response = await create({
      model: "fake",
      input: "say:hello",
      instructions: "Be brief.",
      metadata: { topic: "greeting" },
      max_output_tokens: 50,
      temperature: 0.5,
    });
    expectShape(ResponseObject, response);
    expect(response).toMatchObject({
      object: "response",
      status: "completed",
      model: "fake",
      instructions: "Be brief.",
      metadata: { topic: "greeting" },
      max_output_tokens: 50,
      temperature: 0.5,
      store: true,
      error: null,
      incomplete_details: null,
      output: [{ type: "message", role: "assistant", status: "completed", content: [{ text: "hello" }] }],
      usage: { output_tokens: 6, output_tokens_details: { reasoning_tokens: 0 } },
    });
    expect(response.id).toMatch(/^resp_[0-9a-f]{32}$/);
    const { input_tokens, total_tokens } = response.usage;
    expect(total_tokens).toBe(input_tokens + 6);
  });

  it("is incomplete when the budget ends it", async () => {
    const response = await create({ input: "say:hello", max_output_tokens: 3 });
    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete", content: [{ text: "hel" }] }],
    });
  });

  it("has reasoning and calls as items", async () => {
    const response = await create({ input: `say:<think>hm</think>Well.${CALL}`, tools: [add] });
    expectShape(ResponseObject, response);
    expect(response.output).toMatchObject([
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
      { type: "message", content: [{ type: "output_text", text: "Well." }] },
      { type: "function_call", name: "add", arguments: '{"a": 1}' },
    ]);
    expect(response.usage.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
    expect(response.tools).toEqual([add]);
    expect(response.tool_choice).toBe("auto");
  });

  it("forces calls, and shows the first alone if asked", async () => {
    for (const tool_choice of ["required", { type: "function", name: "add" }]) {
      const body = { input: "go on", tools: [add], tool_choice, parallel_tool_calls: false, temperature: 0 };
      const { output } = await create({ ...body, reasoning: { effort: "none" }, max_output_tokens: 600 });
      expect(output).toMatchObject([{ type: "function_call", name: "add", status: "completed" }]);
      expect(Object.keys(JSON.parse(output[0].arguments))).toEqual(["a"]);
    }
    const both = await create({ input: `say:${CALL}${CALL}`, tools: [add], parallel_tool_calls: false });
    expect(both.output).toHaveLength(1);
    const other = { ...add, name: "other" };
    const chosen = { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "other" }] };
    expect(await promptOf({ input: "say:x", tools: [add, other], tool_choice: chosen })).not.toContain('"add"');
  });

  it("follows a schema", async () => {
    const schema = {
      type: "object",
      properties: { yes: { type: "boolean" } },
      required: ["yes"],
      additionalProperties: false,
    };
    const format = { type: "json_schema", name: "answer", schema, strict: true };
    const body = { input: "go on", reasoning: { effort: "none" }, max_output_tokens: 300 };
    const response = await create({ ...body, text: { format } });
    expect(typeof JSON.parse(response.output[0].content[0].text).yes).toBe("boolean");
    expect(response.text.format).toEqual(format);
  });

  it("gives log probabilities of the message's tokens", async () => {
    const include = ["message.output_text.logprobs"];
    const response = await create({ input: "say:<think>hm</think>yes", include, top_logprobs: 2 });
    const [part] = response.output[1].content;
    expect(part.logprobs.map(({ token }: Loose) => token).join("")).toContain("yes");
    expect(part.logprobs[0].top_logprobs).toHaveLength(2);
    expect(JSON.stringify(part.logprobs)).not.toContain('"m"');
    expect((await create({ input: "say:yes", top_logprobs: 2 })).output[0].content[0].logprobs).toEqual([]);
  });

  it("says nothing as an empty message", async () => {
    const response = await create({ input: "say:" });
    expect(response.output).toMatchObject([{ type: "message", content: [{ text: "" }] }]);
  });
});

describe("items", () => {
  it("become one message for each turn", async () => {
    const prompt = await promptOf({
      instructions: "rules",
      input: [
        { role: "user", content: "one" },
        { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "two" }] },
        { type: "function_call", call_id: "c1", name: "add", arguments: '{"a":1.0}' },
        { type: "function_call", call_id: "c2", name: "add", arguments: '{"a":2}' },
        { type: "function_call", call_id: "c3", name: "add", arguments: "[3]" },
        { type: "function_call_output", call_id: "c1", output: "three" },
        { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "four" }] },
        { role: "user", content: [{ type: "input_text", text: "say:done" }] },
      ],
    });
    expect(prompt).toBe(
      '[system]rules\n[user]one\n[assistant](hm)<add {"a": 1.0}><add {"a": 2}><add {}>two\n[tool]three\n[tool]four\n' +
        "[user]say:done\n[assistant]",
    );
  });

  it.each([
    [{ role: "user", content: [{ type: "input_image", image_url: "x" }] }, "input.0.content.0", /reads text only/],
    [{ role: "user", content: [{ type: "strange" }] }, "input.0.content.0", /use input_text/],
    [{ role: "user", content: 5 }, "input.0.content", /a string or a list/],
    [{ role: "nobody", content: "x" }, "input.0", /needs a role/],
    [{ type: "web_search_call", id: "ws" }, "input.0", /tools that OpenAI hosts/],
    [{ type: "strange" }, "input.0", /"strange" are not supported/],
    [{ type: "function_call", name: "f", arguments: "{}" }, "input.0.call_id", /expected a string/],
    [{ type: "reasoning", summary: [], encrypted_content: "x" }, "input.0", /encrypted reasoning cannot be read/],
    [{ type: "item_reference", id: "msg_1" }, "input.0", /'msg_1' not found/],
  ])("%j is refused", async (item, param, message) => {
    expect(await refuse({ input: [item] })).toMatchObject({ param, message: expect.stringMatching(message) });
  });
});

describe("a stream", () => {
  it("has numbered events in order, and the same response as without", async () => {
    const body = { input: `say:<think>hm</think>Hi.${CALL}`, tools: [add], temperature: 0 };
    const all = await events(body);
    expect(all.map(({ sequence_number }) => sequence_number)).toEqual(all.map((_, index) => index));
    const merged = all.map(({ type }) => type).filter((type, index, types) => type !== types[index - 1]);
    expect(merged).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.reasoning_text.delta",
      "response.reasoning_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const joined = (type: string) =>
      all
        .filter((event) => event.type === type)
        .map(({ delta }) => delta)
        .join("");
    expect(joined("response.reasoning_text.delta")).toBe("hm");
    expect(joined("response.output_text.delta")).toBe("Hi.");
    expect(joined("response.function_call_arguments.delta")).toBe('{"a": 1}');
    const streamed = all.at(-1).response;
    expectShape(ResponseObject, streamed);
    const whole = await create(body);
    const plain = (response: Loose) =>
      JSON.parse(
        JSON.stringify({ ...response, created_at: 0, completed_at: 0 }).replaceAll(response.id.slice(5), "key"),
      );
    const { cached_tokens: _, ...details } = whole.usage.input_tokens_details;
    streamed.usage.input_tokens_details = whole.usage.input_tokens_details;
    expect(plain(streamed)).toEqual(plain(whole));
    expect(details).toEqual({ cache_write_tokens: 0 });
    const ids = all.filter(({ item_id }) => item_id).map(({ item_id, output_index }) => [item_id, output_index]);
    for (const [id, index] of ids) expect(streamed.output[index].id).toBe(id);
  });

  it("ends with incomplete when the budget does", async () => {
    const last = (await events({ input: "say:hello", max_output_tokens: 2 })).at(-1);
    expect(last).toMatchObject({ type: "response.incomplete", response: { status: "incomplete" } });
  });

  it("ends with failed when the engine does, and keeps nothing", async () => {
    let steps = 0;
    const failing = await startTestServer({
      runner: {
        before: () => {
          if (++steps > 4) throw new Error("the step fails");
        },
      },
    });
    try {
      const all = await events({ input: "say:hello" }, failing);
      expect(all.slice(0, 2).map(({ type }) => type)).toEqual(["response.created", "response.in_progress"]);
      const { type, response } = all.at(-1);
      expect(type).toBe("response.failed");
      expect(response).toMatchObject({ status: "failed", store: false, error: { code: "server_error" } });
      expect((await failing.get(`/v1/responses/${response.id}`)).status).toBe(404);
      expect(failing.service.admission.active).toBe(0);
    } finally {
      await failing.close();
    }
  });

  it("stops the work when its client leaves, and keeps nothing", async () => {
    const controller = new AbortController();
    const save = vi.spyOn(server.service.responses, "save");
    const response = await fetch(`${server.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ input: "go on", stream: true, max_output_tokens: 1500 }),
      signal: controller.signal,
    });
    await response.body!.getReader().read();
    controller.abort();
    await expect.poll(() => server.service.admission.active).toBe(0);
    expect(save).not.toHaveBeenCalled();
    save.mockRestore();
  });
});

describe("refusals", () => {
  it.each([
    [{}, "input", /input is missing/],
    [{ input: [] }, "input", /at least one item/],
    [{ input: "x", tools: [{ type: "web_search" }] }, "tools.0", /does not search the web/],
    [{ input: "x", tools: [{ type: "file_search", vector_store_ids: [] }] }, "tools.0", /no vector stores/],
    [{ input: "x", tools: [{ type: "computer_use_preview" }] }, "tools.0", /controls no computer/],
    [{ input: "x", tools: [{ type: "mcp", server_url: "x" }] }, "tools.0", /MCP/],
    [{ input: "x", tools: [{ type: "custom", name: "f" }] }, "tools.0", /define a function/],
    [{ input: "x", tools: [{ type: "function" }] }, "tools.0.name", /needs a name/],
    [{ input: "x", tools: [add], tool_choice: { type: "web_search" } }, "tool_choice", /hosted tools/],
    [{ input: "x", tools: [add], tool_choice: { type: "function", name: "nope" } }, "tool_choice", /not in tools/],
    [{ input: "x", background: true }, "background", /Use stream: true/],
    [{ input: "x", conversation: "conv_1" }, "body.conversation", /use previous_response_id/],
    [{ input: "x", prompt: { id: "p" } }, "body.prompt", /instructions and input/],
    [{ input: "x", temperature: 9 }, "temperature", /temperature/],
    [{ input: "x", max_output_tokens: 0 }, "body.max_output_tokens", /greater than or equal to 1/],
    [{ input: "x".repeat(5000) }, "input", /context length/],
    [{ input: "x", text: { format: { type: "json_schema", name: "n" } } }, "text.format.schema", /needs a schema/],
    [{ input: "x", text: { format: { type: "json_schema", schema: {} } } }, "text.format.name", /needs a name/],
    [{ input: "x", text: { format: { type: "json_schema", name: "n", schema: { type: 5 } } } }, "text.format", /type/],
    [{ input: "x", metadata: { k: "v".repeat(513) } }, "body.metadata.k", /at most 512/],
    [{ input: "x", model: "nobody" }, "model", /does not exist/],
    [{ input: "x", previous_response_id: "resp_nope" }, "previous_response_id", /not found/],
  ])("%j", async (body, param, message) => {
    expect(await refuse(body)).toMatchObject({ param, message: expect.stringMatching(message) });
  });

  it("takes long input to the end with truncation: auto", async () => {
    const response = await create({ input: `${"x".repeat(5000)} say:end`, truncation: "auto", max_output_tokens: 20 });
    expect(response.output[0].content[0].text).toBe("end");
  });

  it("names the command on a server without a parser", async () => {
    const plain = await startTestServer();
    try {
      const error = await refuse({ input: "x", tools: [add], tool_choice: "auto" }, plain);
      expect(error).toMatchObject({
        param: "tool_choice",
        message: expect.stringContaining("--enable-auto-tool-choice"),
      });
    } finally {
      await plain.close();
    }
  });

  it("survives deep, long and strange input", async () => {
    const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    expect(await refuse(`{"input":${deep}}`)).toMatchObject({ status: 400, message: expect.stringContaining("deep") });
    const many = Array.from({ length: 1000 }, (_, i) => ({ role: "user", content: `${i}` }));
    expect(await refuse({ input: many })).toMatchObject({ status: 400, param: "input" });
    const calls = Array.from({ length: 100_000 }, () => 0);
    expect((await refuse({ input: calls })).status).toBe(400);
    for (const input of [5, null, { role: "user" }, [[]], [null], [5]]) {
      expect((await refuse({ input })).status).toBe(400);
    }
    expect(await create({ input: "say:still here" })).toMatchObject({ status: "completed" });
  });
});

describe("limits", () => {
  const full = sharedServer({ config: { maxNumSeqs: 1, maxQueue: 0 } });

  it("are those of chats: one queue for all dialects", async () => {
    const controller = new AbortController();
    const busy = fetch(`${full.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "go on" }], max_tokens: 1900, stream: true }),
      signal: controller.signal,
    });
    await expect.poll(() => full.service.admission.active).toBe(1);
    expect(await refuse({ input: "x" }, full)).toMatchObject({ status: 429 });
    controller.abort();
    await busy.catch(() => {});
    await expect.poll(() => full.service.admission.active).toBe(0);
    expect((await full.post("/v1/responses", { input: "say:x" }, { authorization: "Bearer no" })).status).toBe(401);
  });
});
