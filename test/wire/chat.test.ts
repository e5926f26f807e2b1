import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChatChunk, ChatReply } from "../../src/api/chat/chat.response-schema.ts";
import { says, startTestServer, type TestServer } from "./test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const ajv = new Ajv2020({ strict: false });
const isReply = ajv.compile(ChatReply);
const isChunk = ajv.compile(ChatChunk);

const EOS = 2;
const babble = { messages: [{ role: "user", content: "go on" }], max_tokens: 12, temperature: 0 };

describe("reply", () => {
  it("has every key, null where nothing was asked for", async () => {
    const reply = await server.chat({ messages: says("hello") });
    expect(isReply(reply), JSON.stringify(isReply.errors)).toBe(true);
    expect(Object.keys(reply)).toEqual([
      "id",
      "object",
      "created",
      "model",
      "choices",
      "service_tier",
      "system_fingerprint",
      "usage",
      "prompt_logprobs",
      "prompt_token_ids",
      "kv_transfer_params",
    ]);
    expect(reply).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f-]{36}$/),
      object: "chat.completion",
      model: "fake",
      service_tier: null,
      prompt_logprobs: null,
      prompt_token_ids: null,
      kv_transfer_params: null,
      system_fingerprint: expect.stringMatching(/^flywheel-\d+\.\d+\.\d+-[0-9a-f]{8}$/),
    });
    expect(Math.abs(reply.created - Date.now() / 1000)).toBeLessThan(5);
    expect(reply.choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: "hello",
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          tool_calls: [],
          reasoning: null,
        },
        logprobs: null,
        finish_reason: "stop",
        stop_reason: null,
        token_ids: null,
      },
    ]);
    const prompt = "[user]say:hello\n[assistant]".length;
    expect(reply.usage).toEqual({
      prompt_tokens: prompt,
      total_tokens: prompt + 6,
      completion_tokens: 6,
      prompt_tokens_details: { cached_tokens: expect.any(Number) },
    });
  });

  it("answers an immediate end with empty content and one token", async () => {
    const reply = await server.chat({ messages: says("") });
    expect(reply.choices[0]).toMatchObject({ message: { content: "" }, finish_reason: "stop", stop_reason: null });
    expect(reply.usage.completion_tokens).toBe(1);
  });

  it("uses the prefix cache, apart by salt, and says so", async () => {
    const messages = says("x".repeat(80));
    const first = await server.chat({ messages, cache_salt: "a" });
    const again = await server.chat({ messages, cache_salt: "a" });
    const other = await server.chat({ messages, cache_salt: "b" });
    const cached = [first, again, other].map((r) => r.usage.prompt_tokens_details.cached_tokens);
    expect(cached[0]).toBe(0);
    expect(cached[1]).toBeGreaterThan(0);
    expect(cached[1] % 16).toBe(0);
    expect(cached[1]).toBeLessThan(again.usage.prompt_tokens);
    expect(cached[2]).toBe(0);
    const logprobs = await server.chat({ messages, cache_salt: "a", prompt_logprobs: 0 });
    expect(logprobs.usage.prompt_tokens_details.cached_tokens).toBe(0);
  });

  it("gives n choices in order, usage counted as the dialect does", async () => {
    const reply = await server.chat({ ...babble, temperature: 1, seed: 5, n: 3 });
    expect(reply.choices.map((c: { index: number }) => c.index)).toEqual([0, 1, 2]);
    expect(reply.usage.completion_tokens).toBe(36);
    const singles = await Promise.all([5, 6, 7].map((seed) => server.chat({ ...babble, temperature: 1, seed })));
    expect(reply.choices.map((c: { message: unknown }) => c.message)).toEqual(singles.map((s) => s.choices[0].message));
    const greedy = await server.chat({ ...babble, n: 2 });
    expect(greedy.choices[0].message).toEqual(greedy.choices[1].message);
  });

  it("is reproducible with a seed, also the largest", async () => {
    const raw = (seed: string) =>
      server
        .post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":20,"seed":${seed}}`)
        .then((r) => r.json())
        .then((r) => r.choices[0].message.content);
    expect(await raw("9223372036854775807")).toBe(await raw("9223372036854775807"));
    expect(await raw("9223372036854775807")).not.toBe(await raw("9223372036854775806"));
  });

  it("names the model first served, whatever alias was used", async () => {
    expect((await server.chat({ ...babble, model: "fake-alias" })).model).toBe("fake");
    const missing = await server.post("/v1/chat/completions", { ...babble, model: "nobody" });
    expect(missing.status).toBe(404);
    expect((await missing.json()).error).toEqual({
      message: "The model `nobody` does not exist.",
      type: "NotFoundError",
      param: "model",
      code: 404,
    });
  });
});

describe("request ids", () => {
  it("takes the header, then the body, then a UUID, and returns it in the header", async () => {
    const both = await server.post(
      "/v1/chat/completions",
      { ...babble, request_id: "body" },
      { "x-request-id": "head" },
    );
    expect([both.headers.get("x-request-id"), (await both.json()).id]).toEqual(["head", "chatcmpl-head"]);
    const body = await server.post("/v1/chat/completions", { ...babble, request_id: "body" });
    expect([body.headers.get("x-request-id"), (await body.json()).id]).toEqual(["body", "chatcmpl-body"]);
    const streamed = await server.post(
      "/v1/chat/completions",
      { ...babble, stream: true, request_id: "s" },
      { origin: "http://x" },
    );
    expect(streamed.headers.get("x-request-id")).toBe("s");
    expect(streamed.headers.get("access-control-allow-origin")).toBe("*");
    expect(streamed.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    await streamed.text();
    const none = await server.post("/v1/chat/completions", babble);
    expect((await none.json()).id).toBe(`chatcmpl-${none.headers.get("x-request-id")}`);
    const odd = await server.post("/v1/chat/completions", { ...babble, request_id: "é\n" });
    expect((await odd.json()).id).toBe("chatcmpl-é\n");
    const same = await Promise.all([1, 2, 3].map(() => server.chat({ ...babble, request_id: "same" })));
    expect(same.map((r) => r.id)).toEqual(["chatcmpl-same", "chatcmpl-same", "chatcmpl-same"]);
  });
});

describe("termination", () => {
  it("types stop_reason: null, id, string", async () => {
    const choice = async (body: object) => (await server.chat({ messages: says("one.two"), ...body })).choices[0];
    expect(await choice({})).toMatchObject({
      finish_reason: "stop",
      stop_reason: null,
      message: { content: "one.two" },
    });
    expect(await choice({ max_tokens: 3 })).toMatchObject({
      finish_reason: "length",
      stop_reason: null,
      message: { content: "one" },
    });
    expect(await choice({ max_tokens: 8, max_completion_tokens: 2 })).toMatchObject({ message: { content: "on" } });
    expect(await choice({ stop_token_ids: [46], return_token_ids: true })).toMatchObject({
      finish_reason: "stop",
      stop_reason: 46,
      message: { content: "one" },
      token_ids: [...Buffer.from("one.")],
    });
    expect(await choice({ stop: ["e.t"], return_token_ids: true })).toMatchObject({
      finish_reason: "stop",
      stop_reason: "e.t",
      message: { content: "on" },
      token_ids: [...Buffer.from("one.t")],
    });
    expect(await choice({ stop: "e.t", include_stop_str_in_output: true })).toMatchObject({
      message: { content: "one.t" },
    });
    expect(await choice({ stop_token_ids: [46], include_stop_str_in_output: true })).toMatchObject({
      message: { content: "one." },
    });
    expect(await choice({ stop: ["two"], max_tokens: 7 })).toMatchObject({ finish_reason: "stop", stop_reason: "two" });
  });

  it("honours ignore_eos, min_tokens and repetition detection", async () => {
    const ignoring = await server.chat({
      messages: says("ab"),
      ignore_eos: true,
      max_tokens: 6,
      return_token_ids: true,
    });
    expect(ignoring.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "ab" } });
    expect(ignoring.choices[0].token_ids).toEqual([97, 98, EOS, EOS, EOS, EOS]);
    const minimum = await server.chat({ messages: says("ab"), min_tokens: 5, max_tokens: 5, return_token_ids: true });
    expect(minimum.choices[0].token_ids).not.toContain(EOS);
    expect(minimum.choices[0].finish_reason).toBe("length");
    const repeating = await server.chat({
      messages: says("abcabcabcabc"),
      repetition_detection: { max_pattern_size: 3, min_pattern_size: 2, min_count: 3 },
    });
    expect(repeating.choices[0]).toMatchObject({
      finish_reason: "repetition",
      stop_reason: "repetition_detected",
      message: { content: "abcabcabc" },
    });
  });

  it("drops an unfinished character and hides special tokens unless asked", async () => {
    const cut = await server.chat({ messages: says("aé"), max_tokens: 2 });
    expect(cut.choices[0].message.content).toBe("a");
    const shown = await server.chat({
      messages: says("ab"),
      skip_special_tokens: false,
      ignore_eos: true,
      max_tokens: 4,
    });
    expect(shown.choices[0].message.content).toBe("ab</s></s>");
  });

  it("applies masks and biases", async () => {
    const only = await server.chat({ ...babble, allowed_token_ids: [97, 98] });
    expect(only.choices[0].message.content).toMatch(/^[ab]{12}$/);
    const biased = await server.chat({ ...babble, logit_bias: { "120": 100 } });
    expect(biased.choices[0].message.content).toBe("x".repeat(12));
    const banned = await server.chat({ messages: says("abc"), bad_words: ["b"], max_tokens: 3 });
    expect(banned.choices[0].message.content).not.toContain("b");
  });
});

describe("log probabilities and ids", () => {
  it("gives one entry per token, the sampled one first", async () => {
    const reply = await server.chat({
      ...babble,
      logprobs: true,
      top_logprobs: 3,
      return_token_ids: true,
      max_tokens: 4,
    });
    const { logprobs, token_ids: ids } = reply.choices[0];
    expect(logprobs.content).toHaveLength(4);
    for (const [i, entry] of logprobs.content.entries()) {
      expect(entry.bytes).toEqual([ids[i]]);
      expect(entry.top_logprobs).toHaveLength(3);
      expect(entry.top_logprobs[0]).toEqual({ token: entry.token, logprob: entry.logprob, bytes: entry.bytes });
      expect(entry.logprob).toBe(Math.max(...entry.top_logprobs.map((t: { logprob: number }) => t.logprob)));
    }
    expect(reply.prompt_token_ids).toEqual([...Buffer.from("[user]go on\n[assistant]")]);
  });

  it("has empty alternatives for 0 and null, and writes ids when asked", async () => {
    for (const top of [undefined, 0, null]) {
      const reply = await server.chat({ messages: says("a"), logprobs: true, top_logprobs: top });
      expect(reply.choices[0].logprobs.content.map((e: { top_logprobs: unknown }) => e.top_logprobs)).toEqual([[], []]);
    }
    const reply = await server.chat({
      messages: says("a"),
      logprobs: true,
      top_logprobs: 1,
      return_tokens_as_token_ids: true,
    });
    expect(reply.choices[0].logprobs.content.map((e: { token: string }) => e.token)).toEqual([
      "token_id:97",
      "token_id:2",
    ]);
    expect(reply.choices[0].logprobs.content[0].top_logprobs[0].token).toBe("token_id:97");
  });

  it("floors impossible values", async () => {
    const reply = await server.chat({ messages: says("a"), logprobs: true, allowed_token_ids: [98], max_tokens: 1 });
    expect(reply.choices[0].logprobs.content[0].logprob).toBeGreaterThanOrEqual(-9999);
    const grammar = await server.chat({
      ...babble,
      logprobs: true,
      top_logprobs: 5,
      structured_outputs: { choice: ["q"] },
      max_tokens: 2,
    });
    const first = grammar.choices[0].logprobs.content[0];
    expect(first.logprob).toBe(0);
    expect(first.top_logprobs.slice(1).every((t: { logprob: number }) => t.logprob === -9999)).toBe(true);
  });

  it("gives prompt log probabilities in the order clients see: own token first", async () => {
    const response = await server.post("/v1/chat/completions", { ...babble, prompt_logprobs: 2, max_tokens: 1 });
    const text = await response.text();
    const reply = JSON.parse(text);
    const prompt = [...Buffer.from("[user]go on\n[assistant]")];
    expect(reply.prompt_logprobs).toHaveLength(prompt.length);
    expect(reply.prompt_logprobs[0]).toBeNull();
    reply.prompt_logprobs
      .slice(1)
      .forEach((entry: Record<string, { rank: number; decoded_token: string }>, i: number) => {
        const own = entry[String(prompt[i + 1])]!;
        expect(own.rank).toBeGreaterThanOrEqual(1);
        expect(own.decoded_token).toBe(String.fromCharCode(prompt[i + 1]!));
        expect([2, 3]).toContain(Object.keys(entry).length);
      });
    const keysInOrder = [...text.slice(text.indexOf('"prompt_logprobs"')).matchAll(/\{"(\d+)":\{"logprob"/g)].map((m) =>
      Number(m[1]),
    );
    expect(keysInOrder).toEqual(prompt.slice(1));
  });
});

describe("prompt", () => {
  const promptOf = async (body: object) =>
    Buffer.from((await server.chat({ max_tokens: 1, return_token_ids: true, ...body })).prompt_token_ids).toString();

  it("renders roles, parts, tools and template variables", async () => {
    const messages = [
      { role: "system", content: "be" },
      { role: "user", name: "Ada", content: ["a", { type: "text", text: "b" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
      },
      { role: "tool", tool_call_id: "1", content: [{ type: "text", text: "4" }] },
      { role: "narrator", content: "c" },
    ];
    expect(await promptOf({ messages })).toBe("[system]be\n[user]a\nb\n[assistant]\n[tool]4\n[narrator]c\n[assistant]");
    expect(await promptOf({ messages: [messages[0]], tools: [{ type: "function", function: { name: "f" } }] })).toBe(
      '[tools][{"type": "function", "function": {"name": "f", "description": null, "parameters": null}}]\n[system]be\n[assistant]',
    );
    const chat_template =
      "{{ messages[0].name }}{{ messages[0].reasoning }}{{ documents[0].title }}{{ reasoning_effort }}{{ extra }}{{ enable_thinking }}";
    expect(
      await promptOf({
        messages: [{ role: "assistant", name: "n", content: "c", reasoning_content: "r" }],
        documents: [{ title: "t", text: "x" }],
        reasoning_effort: "high",
        chat_template_kwargs: { extra: 5, unused: 1 },
        chat_template,
      }),
    ).toBe("nrthigh5True");
    const named = { messages: [messages[0]], chat_template: "{{ documents[0].title }}" };
    const documents = [{ title: "as a variable" }];
    expect(await promptOf({ ...named, chat_template_kwargs: { documents } })).toBe("as a variable");
    const both = { documents: [{ title: "as a field", text: "x" }], chat_template_kwargs: { documents } };
    expect(await promptOf({ ...named, ...both })).toBe("as a field");
  });

  it("prints numbers as they were written", async () => {
    const numbers = "[1.0, 1, 12345678901234567890, -0.0, 1e3, 2.50]";
    const printed = "[1.0, 1, 12345678901234567890, -0.0, 1000.0, 2.5]"; // what Python makes of them
    const tool = `{"type":"function","function":{"name":"f","parameters":{"enum":${numbers},"arguments":{"x":1.0}}}}`;
    const call = `{"id":"1","type":"function","function":{"name":"f","arguments":{"a":${numbers}}}}`;
    const body = `{
      "messages": [
        {"role":"developer","content":"7.0","tools":[${tool}]},
        {"role":"assistant","content":null,"tool_calls":[${call}]}
      ],
      "tools": [${tool}],
      "chat_template_kwargs": {"one": 1.0, "long": 9007199254740993, "all": {"n": ${numbers}, "s": "1.0"}},
      "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object",
        "properties": {"parameters": {"type": "integer", "minimum": 3.0, "maximum": 3.0}}, "required": ["parameters"]}}},
      "chat_template": "{{ messages[0].content if messages[0].role == 'developer' }} {{ messages[0].tools[0].function.parameters.enum | tojson }} {{
        messages[1].tool_calls[0].function.arguments.a }} {{ tools[0].function.parameters | tojson }} {{ one }} {{
        one | tojson }} {{ one is float }} {{ long }} {{ long | tojson }} {{ all | tojson }} {{ all.n }}",
      "max_tokens": 40, "temperature": 0, "return_token_ids": true
    }`.replaceAll("\n", " ");
    const response = await server.post("/v1/chat/completions", body);
    const reply = await response.json();
    expect([response.status, reply.error]).toEqual([200, undefined]);
    expect(Buffer.from(reply.prompt_token_ids).toString()).toBe(
      `7.0 ${printed} ${printed} {"enum": ${printed}, "arguments": {"x": 1.0}} 1.0 1.0 True ` +
        `9007199254740993 9007199254740993 {"n": ${printed}, "s": "1.0"} ${printed}`,
    );
    expect(JSON.parse(reply.choices[0].message.content).parameters).toBe(3);
  });

  it("continues, echoes and answers in the last role without a generation prompt", async () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "on and" },
    ];
    const open = {
      messages,
      add_generation_prompt: false,
      continue_final_message: true,
      max_tokens: 3,
      temperature: 0,
    };
    expect(await promptOf(open)).toBe("[user]hi\n[assistant]on and");
    const plain = await server.chat(open);
    const echoed = await server.chat({ ...open, echo: true });
    expect(echoed.choices[0].message.content).toBe(`on and${plain.choices[0].message.content}`);
    expect(echoed.prompt_logprobs).toHaveLength(echoed.usage.prompt_tokens);
    expect(echoed.usage.completion_tokens).toBe(3);
    const user = await server.chat({ messages: [messages[0]], add_generation_prompt: false, max_tokens: 2 });
    expect(user.choices[0].message.role).toBe("user");
    const [opening] = await server.stream({ messages: [messages[0]], add_generation_prompt: false, max_tokens: 2 });
    expect(opening.choices[0].delta.role).toBe("user");
  });

  it("truncates on request only, keeping the end", async () => {
    const messages = [{ role: "user", content: "0123456789" }];
    expect(await promptOf({ messages, truncate_prompt_tokens: 14 })).toBe("89\n[assistant]");
    const long = [{ role: "user", content: "x".repeat(3000) }];
    expect((await promptOf({ messages: long, truncate_prompt_tokens: -1, max_tokens: 48 })).length).toBe(2000);
    const refused = await server.post("/v1/chat/completions", { messages: long, max_tokens: 48 });
    expect(refused.status).toBe(400);
    const { error } = await refused.json();
    expect(error).toMatchObject({ type: "BadRequestError", param: "input_tokens" });
    expect(error.message).toMatch(/2048.*3018.*48/s);
    expect((await server.post("/v1/chat/completions", { messages: long, max_tokens: 2049 })).status).toBe(400);
    expect(
      (await server.post("/v1/chat/completions", { messages: [{ role: "user", content: "x".repeat(2030) }] })).status,
    ).toBe(400);
  });
});

describe("stream", () => {
  it("has the shapes of the dialect, key for key", async () => {
    const chunks = await server.stream({ messages: says("hey"), stream_options: { include_usage: true } });
    for (const chunk of chunks) {
      expect(isChunk(chunk), JSON.stringify([chunk, isChunk.errors])).toBe(true);
    }
    const { id, created } = chunks[0];
    const head = { id, object: "chat.completion.chunk", created, model: "fake" };
    const prompt = "[user]say:hey\n[assistant]".length;
    expect(chunks).toEqual([
      {
        ...head,
        choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
        prompt_token_ids: null,
      },
      ...["h", "e", "y"].map((content) => ({
        ...head,
        choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null, token_ids: null }],
      })),
      {
        ...head,
        choices: [
          {
            index: 0,
            delta: { content: "" },
            logprobs: null,
            finish_reason: "stop",
            stop_reason: null,
            token_ids: null,
          },
        ],
      },
      {
        ...head,
        choices: [],
        system_fingerprint: expect.any(String),
        usage: {
          prompt_tokens: prompt,
          total_tokens: prompt + 4,
          completion_tokens: 4,
          prompt_tokens_details: { cached_tokens: expect.any(Number) },
        },
      },
    ]);
  });

  it("carries ids and logprobs, ahead of text that is held back", async () => {
    const chunks = await server.stream({
      messages: says("abSTOPc"),
      stop: "STOP",
      return_token_ids: true,
      logprobs: true,
      top_logprobs: 1,
    });
    expect(chunks[0].prompt_token_ids).toEqual([...Buffer.from("[user]say:abSTOPc\n[assistant]")]);
    expect(chunks.slice(1).every((chunk) => !("prompt_token_ids" in chunk))).toBe(true);
    const choices = chunks.slice(1).map((chunk) => chunk.choices[0]);
    expect(choices.map((c) => c.delta.content)).toEqual(["", "", "", "a", "b", ""]);
    expect(choices.flatMap((c) => c.token_ids)).toEqual([...Buffer.from("abSTOP")]);
    expect(choices.every((c) => c.logprobs.content.length === c.token_ids.length)).toBe(true);
    expect(choices.at(-1)).toMatchObject({ finish_reason: "stop", stop_reason: "STOP" });
  });

  it("counts usage on every chunk when asked, per choice", async () => {
    const chunks = await server.stream({
      ...babble,
      n: 2,
      temperature: 1,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    expect(chunks.every((chunk) => chunk.usage !== undefined)).toBe(true);
    for (const index of [0, 1]) {
      const counts = chunks.filter((c) => c.choices[0]?.index === index).map((c) => c.usage.completion_tokens);
      expect(counts[0]).toBe(0);
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect(counts.at(-1)).toBe(12);
    }
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 24 } });
    const without = await server.stream({ ...babble, stream_options: { continuous_usage_stats: true } });
    expect(without.every((chunk) => chunk.usage === undefined)).toBe(true);
  });

  it("joins to the text of the whole reply, whatever the options", async () => {
    const text = "Grüße 👩‍👩‍👧 and\ttabs — done. STOP not said";
    for (const options of [
      {},
      { stop: ["STOP", "done"] },
      { stop: "é" },
      { n: 3, seed: 1 },
      { skip_special_tokens: false },
      { stop: "e", min_tokens: 5 },
    ]) {
      const body = { messages: says(text), ...options };
      const whole = await server.chat(body);
      const chunks = await server.stream(body);
      for (const choice of whole.choices) {
        const own = chunks.filter((c) => c.choices[0]?.index === choice.index).map((c) => c.choices[0]);
        expect(own.map((c) => c.delta.content ?? "").join("")).toBe(choice.message.content);
        expect(own.at(-1)).toMatchObject({ finish_reason: choice.finish_reason, stop_reason: choice.stop_reason });
        expect(own.filter((c) => c.finish_reason !== null)).toHaveLength(1);
      }
    }
  });

  it("sends the echo after the role", async () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "so" },
    ];
    const chunks = await server.stream({
      messages,
      add_generation_prompt: false,
      continue_final_message: true,
      echo: true,
      max_tokens: 1,
    });
    expect(chunks.slice(0, 2).map((c) => c.choices[0].delta)).toEqual([
      { role: "assistant", content: "" },
      { content: "so" },
    ]);
  });
});

describe("fields for the engine", () => {
  it("carries engine_xargs, kv_transfer_params and priority", async () => {
    const seen: unknown[] = [];
    const generate = server.service.engine.generate.bind(server.service.engine);
    server.service.engine.generate = (request) => {
      seen.push([request.extra, request.priority, request.cacheSalt]);
      return generate(request);
    };
    await server.chat({
      ...babble,
      engine_xargs: { a: 1 },
      vllm_xargs: { a: 2, b: ["x"] },
      kv_transfer_params: { c: {} },
      priority: -3,
      cache_salt: "s",
      mm_processor_kwargs: { d: 1 },
    });
    server.service.engine.generate = generate;
    expect(seen).toEqual([
      [{ engineArgs: { a: 1, b: ["x"] }, kvTransferParams: { c: {} }, mmProcessorKwargs: { d: 1 } }, -3, "s"],
    ]);
  });

  it.each([
    ["7", 7],
    ["-2", -2],
    ["soon", 5],
    ["1.5", 5],
  ])("takes the priority of the header X-Vllm-Priority: %s", async (header, expected) => {
    const seen: number[] = [];
    const generate = server.service.engine.generate.bind(server.service.engine);
    server.service.engine.generate = (request) => {
      seen.push(request.priority);
      return generate(request);
    };
    const body = { ...babble, max_tokens: 1, priority: 5 };
    const text = { prompt: "a", max_tokens: 1, priority: 5 };
    for (const [path, sent] of [
      ["/v1/chat/completions", body],
      ["/v1/completions", text],
    ] as const) {
      const reply = await server.post(path, sent, { "x-vllm-priority": header });
      expect(reply.status).toBe(200);
    }
    server.service.engine.generate = generate;
    expect(seen).toEqual([expected, expected]);
  });
});

it("constrains output and refuses what cannot be compiled, without harm to others", async () => {
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  };
  const wanted = [
    { response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
    { structured_outputs: { json: JSON.stringify(schema) } },
    { structured_outputs: { regex: "[a-c]{3}" } },
    { structured_outputs: { choice: ["left", "right"] } },
    { structured_outputs: { grammar: 'root ::= "yes" | "no"' } },
  ];
  const replies = await Promise.all(wanted.map((body) => server.chat({ ...babble, ...body, max_tokens: 200 })));
  const texts = replies.map((reply) => reply.choices[0].message.content);
  expect(Number.isInteger(JSON.parse(texts[0]).a)).toBe(true);
  expect(Number.isInteger(JSON.parse(texts[1]).a)).toBe(true);
  expect(texts[2]).toMatch(/^[a-c]{3}$/);
  expect(["left", "right"]).toContain(texts[3]);
  expect(["yes", "no"]).toContain(texts[4]);
});

describe("controls that leave no token", () => {
  const ids = (text: string) => [...Buffer.from(text)];
  const cases = [
    [
      "allowed_token_ids and bad_words",
      { allowed_token_ids: ids("q"), bad_words: ["q"] },
      /allowed_token_ids, bad_words/,
    ],
    [
      "a constraint and allowed_token_ids",
      { structured_outputs: { choice: ["left"] }, allowed_token_ids: ids("x") },
      /constraint, allowed_token_ids/,
    ],
    [
      "a constraint and bad_words, after some output",
      { structured_outputs: { regex: "[a-c]{2}q" }, bad_words: ["q"], logprobs: true },
      /position 2: the structured-output constraint, bad_words/,
    ],
    ["min_tokens and allowed_token_ids", { allowed_token_ids: [2], min_tokens: 3 }, /allowed_token_ids, min_tokens/],
  ] as const;

  it.each(cases)("%s: 400 that names them, in a stream an error event", async (_name, fields, message) => {
    const body = { ...babble, ...fields, max_tokens: 20 };
    const response = await server.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    const { error } = await response.json();
    expect(error).toEqual({ message: expect.stringMatching(message), type: "BadRequestError", param: null, code: 400 });
    const events = await server.stream(body);
    expect(events.at(-1)).toEqual({ error });
    expect(events.some((event) => event.choices?.[0].finish_reason)).toBe(false);
    // No role chunk where no token came.
    expect("choices" in events[0]).toBe(/position [1-9]/.test(error.message));
  });

  it("does not matter behind the end of the reply, however far the forced text reaches", async () => {
    const forced = { ...babble, structured_outputs: { choice: ["hello world"] } };
    const end = async (fields: object) => {
      const { message, ...rest } = (await server.chat({ ...forced, ...fields, return_token_ids: true })).choices[0];
      return { text: message.content, tokens: rest.token_ids.length, finish: rest.finish_reason, by: rest.stop_reason };
    };
    const stopped = { text: "he", tokens: 3, finish: "stop", by: "l" };
    expect(await end({ bad_words: ["wo"], stop: ["l"] })).toEqual(stopped);
    expect(await end({ stop_token_ids: ids("w"), stop: ["l"] })).toEqual(stopped);
    const cut = { text: "hello", tokens: 5, finish: "length", by: null };
    expect(await end({ stop_token_ids: ids("w"), max_tokens: 5 })).toEqual(cut);
  });

  it("a constraint that only stop tokens could continue: 400 that names stop_token_ids, after the text so far", async () => {
    const body = { ...babble, structured_outputs: { choice: ["left"] }, stop_token_ids: ids("t") };
    const response = await server.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    const { error } = await response.json();
    expect(error).toMatchObject({ param: "structured_outputs", message: expect.stringMatching(/stop_token_ids/) });
    const events = await server.stream(body);
    expect(events.map((event) => event.choices?.[0].delta.content ?? "").join("")).toBe("lef");
    expect(events.at(-1)).toEqual({ error });
  });

  it("a grammar that is too ambiguous to follow: 400 as well", async () => {
    const grammar = 'root ::= s\ns ::= s s s | s s | "a" | ""';
    const body = { ...babble, structured_outputs: { grammar }, max_tokens: 500, ignore_eos: true };
    const response = await server.post("/v1/chat/completions", body);
    expect([response.status, (await response.json()).error]).toEqual([
      400,
      expect.objectContaining({
        type: "BadRequestError",
        param: "structured_outputs",
        message: expect.stringMatching(/ambiguous/),
      }),
    ]);
  });
});
