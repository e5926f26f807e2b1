import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CompletionChunk, CompletionReply } from "../../src/api/completions/completions.schema.ts";
import { expectShape, sharedServer } from "./shared-server.ts";
import { type LooseResponse, says } from "./test-server.ts";

const server = sharedServer();
const json = async (response: Promise<LooseResponse>) => (await response).json();
const complete = (body: object) => json(server.post("/v1/completions", body));
const order = (text: string) => `say:${text}\n[assistant]`;

describe("/v1/completions", () => {
  it("completes a text", async () => {
    const reply = await complete({ prompt: order("hello") });
    expectShape(CompletionReply, reply);
    expect(reply).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: "text_completion",
      model: "fake",
      choices: [
        {
          index: 0,
          text: "hello",
          logprobs: null,
          finish_reason: "stop",
          stop_reason: null,
          token_ids: null,
          prompt_logprobs: null,
          prompt_token_ids: null,
        },
      ],
      usage: { prompt_tokens: order("hello").length, completion_tokens: 6 },
    });
  });

  it("takes several prompts, as texts or ids, with n", async () => {
    const ids = (text: string) => [...Buffer.from(text)];
    const forms = [{ prompt: [order("ab"), order("cd")] }, { prompt: [ids(order("ab")), ids(order("cd"))] }];
    for (const form of forms) {
      const reply = await complete({ ...form, n: 2, temperature: 0 });
      expect(reply.choices.map((c: { index: number; text: string }) => [c.index, c.text])).toEqual([
        [0, "ab"],
        [1, "ab"],
        [2, "cd"],
        [3, "cd"],
      ]);
      expect(reply.usage).toMatchObject({ prompt_tokens: 2 * order("ab").length, completion_tokens: 12 });
    }
    const one = await complete({ prompt: ids(order("ab")), return_token_ids: true });
    expect(one.choices[0]).toMatchObject({ text: "ab", token_ids: [97, 98, 2], prompt_token_ids: ids(order("ab")) });
  });

  it("gives 16 tokens by default", async () => {
    expect((await complete({ prompt: "go" })).usage.completion_tokens).toBe(16);
  });

  it("has the older logprob format, offsets into the text", async () => {
    const { logprobs } = (await complete({ prompt: order("abc"), logprobs: 2 })).choices[0];
    expect(logprobs.tokens).toEqual(["a", "b", "c", "</s>"]);
    expect(logprobs.text_offset).toEqual([0, 1, 2, 3]);
    const wide = (await complete({ prompt: order("😀b"), logprobs: 0 })).choices[0].logprobs;
    expect(wide.tokens).toEqual(["", "", "", "😀", "b", "</s>"]);
    expect(wide.text_offset).toEqual([0, 0, 0, 0, 1, 2]);
    expect(logprobs.token_logprobs.every((x: number) => x <= 0 && x > -1)).toBe(true);
    for (const [i, top] of logprobs.top_logprobs.entries()) {
      expect(top[logprobs.tokens[i]]).toBe(logprobs.token_logprobs[i]);
      expect([2, 3]).toContain(Object.keys(top).length);
    }
  });

  it("echoes the prompt with its log probabilities, alone when max_tokens is 0", async () => {
    const prompt = order("x");
    const both = (await complete({ prompt, echo: true, logprobs: 1 })).choices[0];
    expect(both.text).toBe(`${prompt}x`);
    expect(both.logprobs.tokens.join("")).toBe(`${prompt}x</s>`);
    expect(both.logprobs.token_logprobs[0]).toBeNull();
    expect(both.logprobs.top_logprobs[0]).toBeNull();
    expect(both.logprobs.token_logprobs.slice(1).every((v: number | null) => v !== null)).toBe(true);
    const alone = await complete({ prompt, echo: true, logprobs: 0, max_tokens: 0 });
    expect(alone.choices[0]).toMatchObject({ text: prompt, finish_reason: "length", stop_reason: null });
    expect(alone.choices[0].logprobs.tokens.join("")).toBe(prompt);
    expect(alone.usage.completion_tokens).toBe(0);
  });

  it.each([
    ["in the middle", 4, " end"],
    ["within a character", 6, "\ufffd: end"],
    ["nowhere", 16, "start 😀: end"],
  ])("echoes what truncation leaves of the prompt when it cuts %s", async (_where, truncate_prompt_tokens, kept) => {
    const prompt = "start 😀: end";
    for (const form of [prompt, [...Buffer.from(prompt)]]) {
      const body = { prompt: form, truncate_prompt_tokens, echo: true, logprobs: 0, max_tokens: 0 };
      const { text, logprobs } = (await complete(body)).choices[0];
      // The end of a character that was cut has no text of its own.
      expect(text).toEqual(kept);
      expect(logprobs.tokens.join("")).toEqual(kept.replace("\ufffd", ""));
      expect(logprobs.tokens).toHaveLength(Math.min(truncate_prompt_tokens, Buffer.byteLength(prompt)));
    }
  });

  it("puts prompt logprobs inside the choice", async () => {
    const reply = await complete({ prompt: "abc", prompt_logprobs: 1, max_tokens: 1 });
    expect(reply.choices[0].prompt_logprobs).toHaveLength(3);
    expect(reply.choices[0].prompt_logprobs[0]).toBeNull();
  });

  it("fills prompt_logprobs of an echo with logprobs", async () => {
    const [echoed] = (await complete({ prompt: "abc", echo: true, logprobs: 1, max_tokens: 1 })).choices;
    const [asked] = (await complete({ prompt: "abc", prompt_logprobs: 1, max_tokens: 1 })).choices;
    expect(echoed.prompt_logprobs).toEqual(asked.prompt_logprobs);
  });

  it("sends the prompt's ids once with an echo, and the fingerprint last", async () => {
    const chunks = await server.stream({ prompt: order("ab"), echo: true, prompt_logprobs: 0 }, "/v1/completions");
    expect(chunks[0].choices[0].prompt_token_ids).toEqual([...Buffer.from(order("ab"))]);
    expect(chunks.slice(1).map((c) => c.choices[0].prompt_token_ids)).toEqual([null, null]);
    expect(chunks.map((c) => typeof c.system_fingerprint)).toEqual(["undefined", "undefined", "string"]);
    for (const chunk of chunks) expect(chunk.choices[0]).not.toHaveProperty("prompt_logprobs");
  });

  it("cuts the side that truncation_side names", async () => {
    const kept = async (more: object) =>
      (await complete({ prompt: "abcdef", echo: true, max_tokens: 0, truncate_prompt_tokens: 2, ...more })).choices[0]
        .text;
    expect(await kept({})).toBe("ef");
    expect(await kept({ truncation_side: "right" })).toBe("ab");
    expect((await server.post("/v1/completions", { prompt: "a", truncation_side: "up" })).status).toBe(400);
  });

  it("counts the usage of every chunk for its own prompt", async () => {
    const prompt = [order("ab"), order("cdefg")];
    const chunks = await server.stream(
      { prompt, stream_options: { include_usage: true, continuous_usage_stats: true } },
      "/v1/completions",
    );
    const promptTokens = (index: number) =>
      chunks.filter((c) => c.choices[0]?.index === index).map((c) => c.usage.prompt_tokens);
    for (const index of [0, 1]) expect(new Set(promptTokens(index))).toEqual(new Set([prompt[index]!.length]));
    expect(chunks.at(-1).usage.prompt_tokens).toBe(prompt.join("").length);
  });

  it("streams every choice of every prompt", async () => {
    const chunks = await server.stream(
      {
        prompt: [order("ab"), order("cde")],
        stream_options: { include_usage: true },
        return_token_ids: true,
        logprobs: 0,
      },
      "/v1/completions",
    );
    for (const chunk of chunks) expectShape(CompletionChunk, chunk);
    const first = chunks.find((c) => c.choices[0]?.index === 1);
    expect(first.choices[0].prompt_token_ids).toEqual([...Buffer.from(order("cde"))]);
    const withIds = chunks.filter((c) => (c.choices[0]?.prompt_token_ids ?? null) !== null);
    expect(withIds).toHaveLength(2);
    const text = (index: number) =>
      chunks
        .filter((c) => c.choices[0]?.index === index)
        .map((c) => c.choices[0].text)
        .join("");
    expect(text(0)).toBe("ab");
    expect(text(1)).toBe("cde");
    const offsets = chunks.filter((c) => c.choices[0]?.index === 1).flatMap((c) => c.choices[0].logprobs.text_offset);
    expect(offsets).toEqual([0, 1, 2, 3]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 7 } });
  });

  it.each([
    [{}, "body.prompt"],
    [{ prompt: "" }, "prompt"],
    [{ prompt: ["a", ""] }, null],
    [{ prompt: [] }, "prompt"],
    [{ prompt: ["a", 5] }, expect.stringMatching(/^body.prompt/)],
    [{ prompt: [999] }, "prompt"],
    [{ prompt: [-1] }, "prompt"],
    [{ prompt: "a", suffix: "b" }, "suffix"],
    [{ prompt: "a", max_tokens: 0 }, "max_tokens"],
    [{ prompt: "a", max_tokens: -1 }, "max_tokens"],
    [{ prompt: "a", logprobs: 21 }, "logprobs"],
    [{ prompt: "a", logprobs: -1 }, "logprobs"],
    [{ prompt: "a", temperature: 3 }, "temperature"],
    [{ prompt: "x".repeat(2100) }, "input_tokens"],
    [{ prompt: "xx", max_tokens: 2047 }, "input_tokens"],
    [{ prompt: "xx", max_tokens: 2048 }, "input_text"],
    [{ prompt: "x".repeat(20_000) }, "input_text"],
  ])("refuses %j", async (body, param) => {
    for (const stream of [false, true]) {
      const response = await server.post("/v1/completions", { ...body, stream });
      expect(response.status).toBe(400);
      expect((await response.json()).error.param).toEqual(param);
    }
  });
});

describe("/tokenize and /detokenize", () => {
  it("counts what a chat is charged for", async () => {
    const messages = says("héllo");
    const reply = await json(server.post("/tokenize", { messages, return_token_strs: true }));
    const chat = await server.chat({ messages, return_token_ids: true });
    expect(reply.tokens).toEqual(chat.prompt_token_ids);
    expect(reply).toMatchObject({ count: chat.usage.prompt_tokens, max_model_len: 2048 });
    expect(reply.token_strs).toHaveLength(reply.count);
    expect(await json(server.post("/detokenize", { tokens: reply.tokens }))).toEqual({
      prompt: "[user]say:héllo\n[assistant]",
    });
  });

  it("writes nothing for ids that no token has", async () => {
    expect(await json(server.post("/detokenize", { tokens: [97, 999_999, 98] }))).toEqual({ prompt: "ab" });
  });

  it("takes a prompt and template fields", async () => {
    expect(await json(server.post("/tokenize", { prompt: "ab" }))).toEqual({
      count: 2,
      max_model_len: 2048,
      tokens: [97, 98],
      token_strs: null,
    });
    const body = { messages: says("x"), add_generation_prompt: false, chat_template: "{{ messages[0].role }}" };
    expect((await json(server.post("/tokenize", body))).count).toBe(4);
  });

  it("refuses mistakes", async () => {
    for (const [path, body, status] of [
      ["/tokenize", {}, 400],
      ["/tokenize", { prompt: 5 }, 400],
      ["/tokenize", { prompt: "x".repeat(1_048_577) }, 413],
      ["/tokenize", { messages: says("x".repeat(1_048_577)) }, 413],
      ["/tokenize", { prompt: "x", model: "nobody" }, 404],
      ["/tokenize", { messages: says("x"), continue_final_message: true }, 400],
      ["/tokenize", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }, 400],
      ["/detokenize", { tokens: [-1] }, 400],
      ["/detokenize", {}, 400],
    ] as const) {
      expect((await server.post(path, body)).status, JSON.stringify(body)).toBe(status);
    }
  });
});

describe("models and adapters", () => {
  const folder = (name: string) => {
    const path = join(mkdtempSync(join(tmpdir(), "flywheel-adapter-")), name);
    mkdirSync(path);
    writeFileSync(join(path, "adapter_config.json"), "{}");
    return path;
  };

  it("lists cards", async () => {
    const list = await json(server.get("/v1/models"));
    expect(list.object).toBe("list");
    expect(list.data.map((m: { id: string }) => m.id)).toEqual(["fake", "fake-alias"]);
    expect(Object.keys(list.data[0])).toEqual([
      "id",
      "object",
      "created",
      "owned_by",
      "root",
      "parent",
      "max_model_len",
      "permission",
    ]);
    expect(list.data[0]).toMatchObject({ object: "model", root: "fakes/fake", parent: null, max_model_len: 2048 });
    expect(await json(server.get("/v1/models/fake"))).toEqual(list.data[0]);
    expect((await server.get("/v1/models/org/name")).status).toBe(404);
  });

  it("loads, serves, replaces and unloads an adapter", async () => {
    const path = folder("one");
    const load = (body: object) => server.post("/v1/load_lora_adapter", body);
    const loaded = await load({ lora_name: "tuned/a", lora_path: path });
    expect(loaded.status).toBe(200);
    expect(await loaded.text()).toContain("tuned/a");
    expect(await json(server.get("/v1/models/tuned/a"))).toMatchObject({
      parent: "fake",
      root: path,
      max_model_len: null,
    });
    const body = { messages: [{ role: "user", content: "go on" }], temperature: 0, max_tokens: 8 };
    const base = await server.chat(body);
    const tuned = await server.chat({ ...body, model: "tuned/a" });
    expect(tuned.model).toBe("tuned/a");
    expect(tuned.choices[0].message.content).not.toBe(base.choices[0].message.content);

    const again = await load({ lora_name: "tuned/a", lora_path: path });
    expect(again.status).toBe(400);
    expect((await again.json()).error.type).toBe("InvalidUserInput");
    expect((await load({ lora_name: "tuned/a", lora_path: folder("two"), load_inplace: true })).status).toBe(200);
    const scrape = await (await server.get("/metrics")).text();
    expect(scrape).not.toContain('model_name="tuned');
    expect(scrape).toMatch(/vllm:lora_requests_info\{max_lora="2",running_lora_adapters="tuned\/a"\} 1/);

    expect((await server.post("/v1/unload_lora_adapter", { lora_name: "tuned/a" })).status).toBe(200);
    expect((await server.post("/v1/chat/completions", { ...body, model: "tuned/a" })).status).toBe(404);
    expect((await server.post("/v1/unload_lora_adapter", { lora_name: "tuned/a" })).status).toBe(404);
  });

  it("refuses incomplete, taken and broken ones", async () => {
    const load = async (body: object) => (await server.post("/v1/load_lora_adapter", body)).status;
    expect(await load({})).toBe(400);
    expect(await load({ lora_name: "x", lora_path: "" })).toBe(400);
    expect(await load({ lora_name: "fake", lora_path: folder("x") })).toBe(400);
    expect(await load({ lora_name: "x", lora_path: "/nowhere" })).toBe(404);
    expect(await load({ lora_name: "x", lora_path: folder("large") })).toBe(400);
    // "corrupt adapter 500": the files are the server's.
    expect(await load({ lora_name: "x", lora_path: folder("missing") })).toBe(500);
    expect((await server.post("/v1/unload_lora_adapter", {})).status).toBe(400);
  });

  it("leaves nothing behind when two clients replace one name at once", async () => {
    const paths = [folder("a"), folder("b"), folder("c")];
    const replies = await Promise.all(
      paths.map((lora_path) =>
        server.post("/v1/load_lora_adapter", { lora_name: "raced", lora_path, load_inplace: true }),
      ),
    );
    expect(replies.map((r) => r.status)).toEqual([200, 200, 200]);
    expect((await server.post("/v1/unload_lora_adapter", { lora_name: "raced" })).status).toBe(200);
    // Both slots are free again.
    for (const name of ["p", "q"]) {
      expect((await server.post("/v1/load_lora_adapter", { lora_name: name, lora_path: folder(name) })).status).toBe(
        200,
      );
      expect((await server.post("/v1/unload_lora_adapter", { lora_name: name })).status).toBe(200);
    }
  });
});

describe("operations", () => {
  it("answers health, version and load", async () => {
    const health = await server.get("/health");
    expect(health.status).toBe(200);
    expect(await health.text()).toBe("");
    expect(await json(server.get("/version"))).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    expect(await json(server.get("/load"))).toEqual({ server_load: 0 });
  });

  it("counts requests in /load while they run, whatever their number of choices", async () => {
    const response = await server.post("/v1/completions", { prompt: "go", n: 2, max_tokens: 2000, stream: true });
    expect(await json(server.get("/load"))).toEqual({ server_load: 1 });
    await response.body!.cancel();
    await expect.poll(() => json(server.get("/load"))).toEqual({ server_load: 0 });
  });

  it("serves metrics that parse and move", async () => {
    const before = parseMetrics(await (await server.get("/metrics")).text());
    await server.chat({ messages: says("twelve chars") });
    await server.stream({ messages: says("twelve chars") });
    await server.post("/v1/chat/completions", { messages: "no" });
    const after = parseMetrics(await (await server.get("/metrics")).text());
    const moved = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    const labels = 'model_name="fake",engine="0"';
    expect(moved(`vllm:request_success_total{${labels},finished_reason="stop"}`)).toBe(2);
    expect(moved(`vllm:generation_tokens_total{${labels}}`)).toBe(26);
    expect(moved(`vllm:time_to_first_token_seconds_count{${labels}}`)).toBe(2);
    expect(moved(`vllm:e2e_request_latency_seconds_count{${labels}}`)).toBe(2);
    expect(moved(`vllm:request_queue_time_seconds_count{${labels}}`)).toBe(2);
    expect(moved(`vllm:inter_token_latency_seconds_count{${labels}}`)).toBeGreaterThan(10);
    expect(moved('http_requests_total{method="POST",handler="/v1/chat/completions",status="2xx"}')).toBe(2);
    expect(moved('http_requests_total{method="POST",handler="/v1/chat/completions",status="4xx"}')).toBe(1);
    expect(moved('flywheel_rejected_requests_total{code="invalid_body"}')).toBe(1);
    expect(after.get(`vllm:num_requests_running{${labels}}`)).toBe(0);
    // Two prompts with their first tokens, and 2 x 12 steps of one token each.
    const steps = "vllm:iteration_tokens_total";
    expect(moved(`${steps}_count{${labels}}`)).toBe(26);
    expect(moved(`${steps}_bucket{le="1",${labels}}`)).toBe(24);
    expect(moved(`${steps}_bucket{le="+Inf",${labels}}`)).toBe(26);
    const computed = moved(`vllm:prompt_tokens_total{${labels}}`) - moved(`vllm:prefix_cache_hits_total{${labels}}`);
    expect(moved(`${steps}_sum{${labels}}`)).toBe(computed + 26);
  });

  it("counts choices that wait, by reason", async () => {
    const body = { prompt: "go", n: 10, max_tokens: 1500, stream: true, temperature: 1 };
    const response = await server.post("/v1/completions", body);
    const labels = 'model_name="fake",engine="0"';
    const waiting = async () => {
      const samples = parseMetrics(await (await server.get("/metrics")).text());
      const names = ["waiting", "waiting_by_reason", "waiting_by_reason"];
      const more = ["", ',reason="capacity"', ',reason="deferred"'];
      return names.map((name, i) => samples.get(`vllm:num_requests_${name}{${labels}${more[i]}}`));
    };
    await expect.poll(waiting).toEqual([2, 2, 0]);
    await response.body!.cancel();
    await expect.poll(waiting).toEqual([0, 0, 0]);
  });
});

/** Sample name with labels → value; throws on a line that is not exposition format. */
function parseMetrics(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ") || line.startsWith("# TYPE ")) continue;
    const match = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$/.exec(line);
    if (match === null || Number.isNaN(Number(match[2]!.replace("+Inf", "Infinity").replace("Nan", "0")))) {
      throw new Error(`not a sample: ${line}`);
    }
    samples.set(match[1]!, Number(match[2]));
  }
  return samples;
}
