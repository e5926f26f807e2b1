// A server with a remote engine answers with the same bits as one with the embedded engine. Both run the same real
// model, with adapters. Only ids, times and the fingerprint of the setup may differ.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadModel } from "../../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../../src/app/serve.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { OptionName } from "../../../src/config/options.ts";
import { FakeVllm } from "../../support/fake-vllm.ts";
import { type Loose, looseFetch } from "../../support/test-server.ts";

const checkpoint = fileURLToPath(new URL("../../fixtures/llama", import.meta.url));
const THINKING = `{% for m in messages %}[{{ m.role }}]{{ m.content }}
{% endfor %}{% if add_generation_prompt %}[assistant]{% if think %}<think>{% endif %}{% endif %}{# <think></think> #}`;

function start(flags: Partial<Record<OptionName, unknown>>): Promise<StartedServer> {
  const common = {
    model: checkpoint,
    port: 0,
    data: mkdtempSync(join(tmpdir(), "flywheel-remote-")),
    apiKey: ["k"],
    logLevel: "error",
    threads: 1,
    chatTemplate: THINKING,
    toolCallParser: "hermes",
    enableAutoToolChoice: true,
    maxLogprobs: -1,
    training: false,
  };
  return startServer(loadConfig({ env: {}, flags: { ...common, ...flags } }), loadModel);
}

let embedded: StartedServer;
let replica: StartedServer;
let remote: StartedServer;

beforeAll(async () => {
  const loraModules = [`tuned=${checkpoint}`];
  [embedded, replica] = await Promise.all([start({ loraModules }), start({})]);
  remote = await start({ engineUrl: [replica.url], engineApiKey: "k", loraModules });
});

afterAll(async () => {
  await remote?.close();
  await Promise.all([embedded?.close(), replica?.close()]);
});

async function send(server: StartedServer, path: string, body: object): Promise<{ status: number; text: string }> {
  const headers = { authorization: "Bearer k", "content-type": "application/json" };
  const response = await looseFetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

/** Without what differs between any two replies, or between two setups. */
function comparable(text: string): string {
  return text
    .replace(/"(?:id|request_id)":"(?:chatcmpl-|cmpl-|chatcmpl-tool-|call_|generate-tokens-)[^"]*"/g, '"id":"…"')
    .replace(/"created":\d+/g, '"created":0')
    .replace(/"system_fingerprint":"[^"]*"/g, '"system_fingerprint":"…"');
}

/** The payloads of a stream, one choice after the other: choices may overtake each other, and chunks may merge. */
function joined(text: string): unknown {
  const events = text.split("\n\n").flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
  const choices = new Map<number, { text: string; ids: number[]; logprobs: unknown[]; ends: unknown[] }>();
  for (const choice of events.flatMap((event: Loose) => event.choices ?? [])) {
    const one = choices.get(choice.index) ?? { text: "", ids: [], logprobs: [], ends: [] };
    choices.set(choice.index, one);
    one.text += choice.text ?? choice.delta?.content ?? "";
    one.ids.push(...(choice.token_ids ?? []));
    one.logprobs.push(choice.logprobs?.content ?? choice.logprobs?.top_logprobs ?? []);
    if (choice.finish_reason) one.ends.push([choice.finish_reason, choice.stop_reason]);
  }
  const usage = events.map((event: Loose) => event.usage).findLast(Boolean);
  const flat = [...choices].sort(([a], [b]) => a - b).map(([, one]) => ({ ...one, logprobs: one.logprobs.flat() }));
  return { choices: flat, usage, error: events.find((event: Loose) => event.error)?.error ?? null };
}

const messages = [{ role: "user", content: "Count to ten, and say why you do so." }];
const schema = {
  type: "object",
  properties: { a: { type: "integer" }, b: { enum: ["x", "y"] } },
  required: ["a", "b"],
};
const tools = [
  {
    type: "function",
    function: { name: "add", parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } },
  },
];

const CHATS: Record<string, object> = {
  plain: {},
  "an adapter": { model: "tuned", logprobs: true, top_logprobs: 3 },
  "several choices": { n: 3, temperature: 1, seed: 5 },
  "a large seed": { temperature: 0.8, seed: 2 ** 62 },
  "log-probabilities": { logprobs: true, top_logprobs: 7, temperature: 1, seed: 1 },
  "no alternatives": { logprobs: true, top_logprobs: 0 },
  "the whole vocabulary": { logprobs: true, top_logprobs: -1, max_tokens: 2 },
  "named log-probabilities": { logprobs: true, logprob_token_ids: [70, 3, 255] },
  "the prompt's log-probabilities": { prompt_logprobs: 4, n: 2 },
  "all of the prompt's": { prompt_logprobs: -1 },
  "an echo": { echo: true, logprobs: true, top_logprobs: 1 },
  "truncated draws": { temperature: 1.3, top_k: 20, top_p: 0.9, min_p: 0.01, seed: 3 },
  penalties: { repetition_penalty: 1.4, frequency_penalty: 0.7, presence_penalty: -0.5 },
  "bias and masks": { logit_bias: { 70: 4, 71: -100 }, allowed_token_ids: [70, 71, 72, 73, 80, 90] },
  "bad words": { bad_words: ["e", "th"], temperature: 1, seed: 9 },
  "stop ids": { stop_token_ids: [116, 46, 97], max_tokens: 40, temperature: 1, seed: 2 },
  "stop strings": { stop: ["e", "a"], max_tokens: 40, temperature: 1, seed: 4 },
  min_tokens: { min_tokens: 6, stop_token_ids: [...Array(200).keys()], max_tokens: 9 },
  "ignored EOS": { ignore_eos: true, logit_bias: { 2: 100 }, max_tokens: 5 },
  EOS: { logit_bias: { 2: 100 }, max_tokens: 5 },
  "EOS as a stop id": { ignore_eos: true, stop_token_ids: [2], logit_bias: { 2: 100 }, max_tokens: 5 },
  "repetition detection": { repetition_detection: { max_pattern_size: 3, min_count: 2 }, logit_bias: { 80: 100 } },
  "token ids": { return_token_ids: true, return_tokens_as_token_ids: true, logprobs: true, top_logprobs: 2 },
  "a JSON schema": { response_format: { type: "json_schema", json_schema: { name: "s", schema } }, max_tokens: 60 },
  "a JSON object": { response_format: { type: "json_object" }, max_tokens: 30 },
  "compact JSON": { structured_outputs: { json: schema, disable_any_whitespace: true }, max_tokens: 60 },
  "free JSON": {
    structured_outputs: { json: schema, any_property_order: true, undeclared_properties: true },
    max_tokens: 60,
  },
  "a whitespace pattern": { structured_outputs: { json: schema, whitespace_pattern: " ?" }, max_tokens: 60 },
  "a regular expression": { structured_outputs: { regex: "[a-c]{3}-[0-9]{2}" }, logprobs: true, top_logprobs: 2 },
  "a choice": { structured_outputs: { choice: ["yes", "no", "perhaps"] }, n: 2, seed: 1, temperature: 2 },
  "a choice without end": { structured_outputs: { choice: ["yes", "no"] }, ignore_eos: true },
  "a grammar": { structured_outputs: { grammar: 'root ::= ("a" | "b")+ "." ' } },
  "a structural tag": {
    response_format: {
      type: "structural_tag",
      format: { type: "tag", begin: "<a>", content: { type: "json_schema", json_schema: schema }, end: "</a>" },
    },
    max_tokens: 60,
  },
  "a required tool": { tools, tool_choice: "required", max_tokens: 80 },
  "a named tool": { tools, tool_choice: { type: "function", function: { name: "add" } }, max_tokens: 80 },
  "JSON after an open thought": {
    response_format: { type: "json_object" },
    chat_template_kwargs: { think: true },
    max_tokens: 40,
  },
  "a thinking budget": { chat_template_kwargs: { think: true }, thinking_token_budget: 3, max_tokens: 20 },
  "a budget before JSON": {
    chat_template_kwargs: { think: true },
    thinking_token_budget: 2,
    response_format: { type: "json_object" },
    max_tokens: 30,
  },
  "a contradiction": { structured_outputs: { choice: ["yes"] }, allowed_token_ids: [70] },
  "a salt and a priority": { cache_salt: "s", priority: 3 },
};

describe.each(Object.keys(CHATS))("%s", (name) => {
  const body = { messages, temperature: 0, max_tokens: 12, ...CHATS[name] };

  it("is the same in a reply", async () => {
    const [own, other] = await Promise.all([embedded, remote].map((s) => send(s, "/v1/chat/completions", body)));
    expect(comparable(other!.text)).toBe(comparable(own!.text));
    expect(other!.status).toBe(own!.status);
  });

  it("is the same in a stream", async () => {
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
    const [own, other] = await Promise.all([embedded, remote].map((s) => send(s, "/v1/chat/completions", streamed)));
    expect(joined(other!.text)).toEqual(joined(own!.text));
    expect(other!.status).toBe(own!.status);
  });
});

it("is the same for text completions, echoes and several prompts", async () => {
  for (const body of [
    { prompt: ["Once upon a time", "there was"], n: 2, temperature: 1, seed: 3, logprobs: 2 },
    { prompt: [5, 6, 7], echo: true, logprobs: 1, max_tokens: 0, temperature: 0 },
    { prompt: "abc", model: "tuned", prompt_logprobs: 2, temperature: 0 },
  ]) {
    const [own, other] = await Promise.all([embedded, remote].map((s) => send(s, "/v1/completions", body)));
    expect(comparable(other!.text)).toBe(comparable(own!.text));
    const streamed = { ...body, prompt_logprobs: null, stream: true, stream_options: { include_usage: true } };
    const streams = await Promise.all([embedded, remote].map((s) => send(s, "/v1/completions", streamed)));
    expect(joined(streams[1]!.text)).toEqual(joined(streams[0]!.text));
  }
});

it("reports cached tokens as the embedded engine does", async () => {
  const long = { messages: [{ role: "user", content: "x".repeat(200) }], max_tokens: 4, temperature: 0, n: 2 };
  for (let round = 0; round < 2; round++) {
    const [own, other] = await Promise.all([embedded, remote].map((s) => send(s, "/v1/chat/completions", long)));
    expect(JSON.parse(other!.text).usage).toEqual(JSON.parse(own!.text).usage);
  }
});

describe("a start", () => {
  it("says what is wrong with a server that cannot be used", async () => {
    const foreign = await FakeVllm.start();
    foreign.prank = (body) => {
      body.return_token_ids = false;
      return false;
    };
    await expect(start({ engineUrl: [foreign.url] })).rejects.toThrow(`--engine-url ${foreign.url} cannot be used: `);
    await expect(start({ engineUrl: [foreign.url] })).rejects.toThrow("returns no token ids");
    await foreign.close();
    await expect(start({ engineUrl: [replica.url] })).rejects.toThrow("--engine-api-key");
    await expect(start({ engineUrl: [replica.url], engineApiKey: "k", model: "bundled" })).rejects.toThrow(
      "fewer than",
    );
  });

  it("takes URLs with a most number of choices, separated by commas in the environment", () => {
    const read = (value: string) => loadConfig({ env: { FLYWHEEL_ENGINE_URL: value } }).engineUrl;
    expect(read("http://a:1,max=3,http://b:2")).toEqual(["http://a:1,max=3", "http://b:2"]);
    for (const wrong of ["a:1", "http://a:1,max=0", "http://a:1,min=2", "http://a:1,http://a:1"]) {
      expect(() => read(wrong)).toThrow("FLYWHEEL_ENGINE_URL");
    }
  });
});
