import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { generateRequest, samplingParams } from "../../../test/support/requests.ts";
import type { ConstrainedOutput, OutputShape } from "../../grammar/constraint.ts";
import type { SampledToken } from "../../sampling/token-logprobs.ts";
import type { GenerateRequest } from "../contract.ts";
import { finishOfEvent, finishOfReply } from "./choice-call.ts";
import { CompletionBodies, finishOf, type ServerFacts, tokensOf, type WireCompletion } from "./vllm-dialect.ts";
import { outputLogprobs, promptLogprobs } from "./wire-logprobs.ts";

const vllm: ServerFacts = { flywheel: false, version: [0, 27], model: "base", vocabSize: 100, front: "a" };
const flywheel: ServerFacts = { ...vllm, flywheel: true, version: [0, 1] };

const body = (request: GenerateRequest, server = vllm, index = 0) =>
  JSON.parse(new CompletionBodies(request, server, "id", true).of(index));

interface Recording {
  name: string;
  body: { prompt: number[] };
  reply: { status: number; json?: WireCompletion; sse?: (WireCompletion | string)[] };
}

/** Replies of vLLM 0.27.1. */
const recordings = new Map(
  readFileSync(new URL("../../../test/fixtures/vllm/recordings.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Recording)
    .map((recording) => [recording.name, recording]),
);
const recorded = (name: string) => recordings.get(name)!.reply;

describe("the request", () => {
  it("says everything, so that no default of the server applies", () => {
    const sampling = {
      ...samplingParams({ temperature: 0.7, logitBias: [[42, -100]], badWordTexts: ["no"], stopTokenIds: [9] }),
      ...{ seed: 7n, minTokens: 2, logprobs: 3, allowedTokenIds: [1, 2] },
      repetitionDetection: { maxPatternSize: 4, minPatternSize: 1, minCount: 3 },
    };
    const extra = { kvTransferParams: { a: 1 }, engineArgs: { b: "x" } };
    const request = generateRequest([1, 2, 3], sampling, { adapter: "3f9c", cacheSalt: "salt", priority: 5, extra });
    expect(body(request)).toEqual({
      model: "fw-a-3f9c",
      prompt: [1, 2, 3],
      n: 1,
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: false },
      max_tokens: 8,
      min_tokens: 2,
      temperature: 0.7,
      top_p: 1,
      top_k: 0,
      min_p: 0,
      repetition_penalty: 1,
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: { 42: -100 },
      allowed_token_ids: [1, 2],
      bad_words: ["no"],
      stop: [],
      stop_token_ids: [2, 9],
      ignore_eos: true,
      logprobs: 3,
      return_token_ids: true,
      return_tokens_as_token_ids: true,
      skip_special_tokens: false,
      priority: 5,
      cache_salt: "salt",
      kv_transfer_params: { a: 1 },
      vllm_xargs: { b: "x" },
      repetition_detection: { max_pattern_size: 4, min_pattern_size: 1, min_count: 3 },
      seed: 7,
      request_id: "id-0",
    });
  });

  it("leaves out EOS that the request ignores, and asks for the whole vocabulary by its size", () => {
    expect(body(generateRequest([1], { ignoreEos: true, stopTokenIds: [9] })).stop_token_ids).toEqual([9]);
    expect(body(generateRequest([1], { eosTokenId: null })).stop_token_ids).toEqual([]);
    expect(body(generateRequest([1], { logprobs: -1 })).logprobs).toBe(100);
    expect(body(generateRequest([1])).logprobs).toBeNull();
  });

  it("writes 64-bit seeds exactly and never -1, which would mean none", () => {
    const text = (seed: bigint, index: number) =>
      new CompletionBodies(generateRequest([1], { seed }), vllm, "id", true).of(index);
    expect(text(2n ** 63n - 2n, 1)).toContain('"seed":9223372036854775807,');
    expect(text(2n ** 63n - 1n, 1)).toContain('"seed":-9223372036854775808,');
    expect(text(-2n, 1)).toContain('"seed":9223372036854775807,');
  });

  it("gives vLLM a thinking budget, if it is new enough, and Flywheel the exact limit", () => {
    const request = generateRequest([1], { thinking: { startIds: [5], endIds: [6], maxTokens: 7, open: true } });
    expect(body(request).thinking_token_budget).toBe(7);
    expect(() => body(request, { ...vllm, version: [0, 17] })).toThrow("thinking_token_budget");
    expect(body(request, flywheel).forwarded.thinking).toEqual({
      start_ids: [5],
      end_ids: [6],
      max_tokens: 7,
      open: true,
    });
  });
});

describe("constraints", () => {
  const json = { compact: false, closedObjects: false, whitespacePattern: null };
  const outputs = (shape: OutputShape, reasoning: ConstrainedOutput["reasoning"] = null, server = vllm) =>
    body(generateRequest([1], {}, { grammar: "key", constraint: { shape, reasoning } }), server);
  const tagOf = (sent: { structured_outputs: { structural_tag: string } }) =>
    JSON.parse(sent.structured_outputs.structural_tag);
  const open = { start: "<think>", end: "</think>", mode: "open" } as const;
  const tools = [
    { name: "f", parameters: { type: "object" } },
    { name: "g", parameters: null },
  ];

  it.each<[string, OutputShape, unknown]>([
    ["json", { kind: "json_schema", schema: { type: "integer" }, json }, { json: { type: "integer" } }],
    ["json_object", { kind: "json_object", json }, { json_object: true }],
    ["regex", { kind: "regex", pattern: "a+" }, { regex: "a+" }],
    ["choice", { kind: "choice", choices: ["a", "b"] }, { choice: ["a", "b"] }],
    ["grammar", { kind: "grammar", source: 'root ::= "x"' }, { grammar: 'root ::= "x"' }],
    ["structural_tag", { kind: "structural_tag", tag: { a: 1 }, json }, { structural_tag: '{"a":1}' }],
  ])("sends %s as it is", (_, shape, expected) => {
    expect(outputs(shape).structured_outputs).toEqual(expected);
    expect(outputs(shape, null, flywheel).structured_outputs).toMatchObject(expected as object);
  });

  it("spells tool calls as tags", () => {
    const calls = outputs({ kind: "tool_calls", format: "hermes", tools, parallel: false });
    expect(tagOf(calls).format).toEqual({
      type: "tags_with_separator",
      tags: [
        {
          type: "tag",
          begin: '<tool_call>\n{"name": "f", "arguments": ',
          content: { type: "json_schema", json_schema: { type: "object" } },
          end: "}\n</tool_call>",
        },
        {
          type: "tag",
          begin: '<tool_call>\n{"name": "g", "arguments": ',
          content: { type: "json_schema", json_schema: { type: "object", properties: {} } },
          end: "}\n</tool_call>",
        },
      ],
      separator: "\n",
      at_least_one: true,
      stop_after_first: true,
    });
    const llama = tagOf(outputs({ kind: "tool_calls", format: "llama3_json", tools, parallel: true })).format;
    expect([llama.tags[0].begin, llama.separator]).toEqual(['{"name": "f", "parameters": ', "; "]);
    expect(() => outputs({ kind: "tool_calls", format: "pythonic", tools, parallel: true })).toThrow("tool_choice");
  });

  it("spells calls inside marks, and calls beside an answer", () => {
    const calls = { kind: "tool_calls", format: "mistral", tools, parallel: true } as const;
    const { type, elements } = tagOf(outputs(calls)).format;
    expect([type, elements[0], elements[2]]).toEqual([
      "sequence",
      { type: "const_string", value: "[TOOL_CALLS][" },
      { type: "const_string", value: "]" },
    ]);
    expect(elements[1]).toMatchObject({
      separator: ", ",
      tags: [{ begin: '{"name": "f", "arguments": ', end: "}" }, {}],
    });
    const either: OutputShape = { kind: "calls_or", calls, answer: { kind: "regex", pattern: "a+" } };
    expect(tagOf(outputs(either)).format).toEqual({
      type: "or",
      elements: [
        { type, elements },
        { type: "regex", pattern: "a+" },
      ],
    });
    const sent = outputs(either, null, flywheel);
    expect(sent.structured_outputs).toEqual({ regex: "a+" });
    expect(sent.forwarded).toMatchObject({ tool_calls: { format: "mistral", tools, parallel: true } });
    const compact: OutputShape = { ...either, answer: { kind: "json_object", json: { ...json, compact: true } } };
    expect(() => outputs(compact)).toThrow("structured_outputs.");
  });

  it("has calls of custom tools in free text, if a schema can say what their text is", () => {
    const calls = (format: "hermes" | "mistral", syntax: "regex" | "lark"): OutputShape => {
      const tool = { name: "f", parameters: null, input: { syntax, definition: "a|b" } };
      return { kind: "calls_or", calls: { kind: "tool_calls", format, tools: [tool], parallel: true }, answer: null };
    };
    const content = { json_schema: { properties: { input: { pattern: "^(?:a|b)$" } }, required: ["input"] } };
    expect(tagOf(outputs(calls("hermes", "regex"))).format).toMatchObject({
      type: "triggered_tags",
      triggers: ["<tool_call>"],
      tags: [{ begin: '<tool_call>\n{"name": "f", "arguments": ', content, end: "}\n</tool_call>" }],
    });
    expect(() => outputs(calls("hermes", "lark"))).toThrow("Lark");
    expect(() => outputs(calls("mistral", "regex"))).toThrow("mistral");
    const sent = outputs(calls("mistral", "lark"), null, flywheel);
    expect(sent.forwarded).toMatchObject({
      tool_calls: { tools: [{ input: { syntax: "lark", definition: "a|b" } }], in_text: true },
    });
  });

  it("puts reasoning in front, as one structural tag", () => {
    const thought = { type: "tag", begin: "", content: { type: "any_text" }, end: "</think>" };
    const breaks = { type: "regex", pattern: "\\n{0,2}" };
    const output = { type: "regex", pattern: "a+" };
    const shape: OutputShape = { kind: "regex", pattern: "a+" };
    expect(tagOf(outputs(shape, open)).format).toEqual({ type: "sequence", elements: [thought, breaks, output] });
    expect(tagOf(outputs(shape, { ...open, mode: "optional" })).format).toEqual({
      type: "or",
      elements: [output, { type: "sequence", elements: [{ ...thought, begin: "<think>" }, breaks, output] }],
    });
  });

  it("refuses what vLLM would ignore", () => {
    for (const option of [{ compact: true }, { freeOrder: true }, { openObjects: true }, { whitespacePattern: " " }]) {
      expect(() => outputs({ kind: "json_object", json: { ...json, ...option } })).toThrow("structured_outputs.");
    }
  });

  it("hands Flywheel reasoning and tool calls as they are, and leaves EOS to it", () => {
    const sent = outputs({ kind: "tool_calls", format: "pythonic", tools, parallel: true }, open, flywheel);
    expect(sent.forwarded).toEqual({
      tool_calls: { format: "pythonic", tools, parallel: true },
      reasoning: open,
      thinking: null,
    });
    expect(sent.structured_outputs).toBeUndefined();
    expect([sent.ignore_eos, sent.stop_token_ids]).toEqual([false, []]);
    const options = { ...json, compact: true, whitespacePattern: " ?", openObjects: true };
    expect(outputs({ kind: "json_object", json: options }, null, flywheel).structured_outputs).toEqual({
      json_object: true,
      disable_any_whitespace: true,
      disable_additional_properties: false,
      any_property_order: false,
      undeclared_properties: true,
      whitespace_pattern: " ?",
    });
  });
});

describe("recorded replies", () => {
  it("reads tokens, their log-probabilities and the end", () => {
    const into: SampledToken[] = [];
    const whole = recorded("c-ids").json!.choices![0]!;
    tokensOf(whole, samplingParams(), into);
    expect(into.map(({ id }) => id)).toEqual([60, 60, 60, 60, 60, 60, 60, 60]);
    expect(finishOf(whole, samplingParams())).toEqual({ reason: "length", stopReason: null });
    const chunk = (recorded("c-stream-lp").sse![0] as WireCompletion).choices![0]!;
    expect(chunk.token_ids).toEqual([2]);
    const { logprobs } = recorded("c-rtati").json!.choices![0]!;
    expect(outputLogprobs(logprobs!, 0, 2, { logprobs: 1, logprobTokenIds: null })).toEqual({
      logprob: -0.0014718662714585662,
      rank: null,
      topIds: [2],
      topLogprobs: [-0.0014718662714585662],
    });
    const usage = (recorded("c-stream").sse![1] as WireCompletion).usage;
    expect(usage?.prompt_tokens_details?.cached_tokens).toBe(0);
  });

  it("reads the prompt's log-probabilities in the order of their ranks", () => {
    const { prompt_logprobs: wire } = recorded("c-pl").json!.choices![0]!;
    const ids = [1148, 3167, 2777, 303, 6091, 697, 370];
    const found = promptLogprobs(wire!, ids, 1);
    expect(found[0]).toBeNull();
    expect(found[1]).toEqual({
      logprob: -21.27646827697754,
      rank: 5098,
      topIds: [2],
      topLogprobs: [-0.012264315038919449],
    });
  });

  it("tells what a refusal means", () => {
    const finish = (name: string, adapter: string | null = null) => {
      const { status, json } = recorded(name);
      return finishOfReply({ status, text: JSON.stringify(json) }, generateRequest([1], {}, { adapter }), vllm);
    };
    expect(finish("c-lp21")).toMatchObject({ fault: "refused" });
    expect(finish("c-lp21").message).toContain("--max-logprobs");
    expect(finish("c-oov").message).toContain("Token id 999999 is out of vocabulary");
    expect(finish("model-unknown", "abc").fault).toBe("unloaded");
    expect(finish("model-unknown").fault).toBeUndefined();
    const choice = { request: generateRequest([1]), server: flywheel, position: 0 };
    expect(finishOfEvent({ message: "no token left", code: 400 }, choice).fault).toBe("contradiction");
    expect(finishOfEvent({ message: "x", param: "structured_outputs", code: 400 }, choice).fault).toBe("constraint");
  });
});

describe("log-probabilities", () => {
  const wire = (top: Record<string, number>, own: number) => ({ token_logprobs: [own], top_logprobs: [top] });

  it("puts the sampled token among the k most likely where it belongs: best first, equal ones by id", () => {
    const top = { "token_id:5": -1, "token_id:9": -0.5, "token_id:3": -1, "token_id:7": -1 };
    const read = (k: number) => outputLogprobs(wire(top, -1), 0, 5, { logprobs: k, logprobTokenIds: null });
    expect(read(4).topIds).toEqual([9, 3, 5, 7]);
    expect(read(-1).topIds).toEqual([9, 3, 5, 7]);
    expect(read(3).topIds).toEqual([9, 3, 7]); // four of them: it is not one of the three
  });

  it("keeps the order of ids that were asked for", () => {
    const top = { "token_id:5": -1, "token_id:9": -2 };
    const read = (ids: number[]) => outputLogprobs(wire(top, -1), 0, 5, { logprobs: 0, logprobTokenIds: ids });
    expect(read([9, 5]).topLogprobs).toEqual([-2, -1]);
    expect(() => read([9, 8])).toThrow("logprob_token_ids");
  });

  it("gives a prompt token its place among equal ones by the rank that the others lack", () => {
    const entry = (rank: number) => ({ logprob: -1, rank });
    const found = promptLogprobs([null, { 4: entry(1), 8: entry(3), 6: entry(3) }], [1, 6], 3)[1];
    expect(found).toMatchObject({ rank: 3, topIds: [4, 6, 8] });
  });
});
