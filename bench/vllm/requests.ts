// Requests that vLLM and Flywheel must answer alike when Flywheel has that vLLM behind it. They work with every model:
// greedy, or sampled with a seed, which both sides pass to the same sampler.

export interface Exchange {
  name: string;
  path: string;
  body: Record<string, unknown>;
}

export interface ModelFacts {
  /** Encodes a text without special tokens. */
  encode(text: string): number[];
  eosTokenId: number | null;
  maxModelLen: number;
}

const CHAT = "/v1/chat/completions";
const COMPLETIONS = "/v1/completions";
const QUESTION = { role: "user", content: "Tell me about the sea in a few words." };
const MESSAGES = [QUESTION];
const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const SCHEMA = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer", minimum: 0, maximum: 99 } },
  required: ["name", "age"],
  additionalProperties: false,
};

export function requests(facts: ModelFacts): Exchange[] {
  const ids = facts.encode("The sea is");
  const [first = 5, second = 6] = facts.encode(" water and salt");
  return [
    ...chats(facts, first, second),
    ...streams(),
    ...constrained(),
    ...completions(ids, first),
    ...texts(ids),
    ...refused(facts),
  ];
}

/** A chat request: greedy, 16 tokens, with token ids and log-probabilities. */
function chat(name: string, fields: Record<string, unknown>): Exchange {
  const body = {
    messages: MESSAGES,
    temperature: 0,
    max_tokens: 16,
    return_token_ids: true,
    logprobs: true,
    top_logprobs: 2,
  };
  return { name: `chat ${name}`, path: CHAT, body: { ...body, ...fields } };
}

function chats({ eosTokenId, encode }: ModelFacts, first: number, second: number): Exchange[] {
  const assistant = { role: "assistant", content: "The sea is" };
  const system = { role: "system", content: "You are terse." };
  return [
    chat("greedy", {}),
    chat("system message", { messages: [system, QUESTION] }),
    chat("several turns", { messages: [QUESTION, assistant, { role: "user", content: "Go on." }] }),
    chat("content parts", { messages: [{ role: "user", content: [{ type: "text", text: "Hi!" }] }] }),
    chat("Unicode", { messages: [{ role: "user", content: "你好 😀, say something with emoji 🎉" }], max_tokens: 24 }),
    chat("sampled", { temperature: 1, seed: 1 }),
    chat("sampled, hot", { temperature: 1.7, top_p: 0.9, top_k: 40, seed: 2 }),
    chat("sampled, min_p", { temperature: 1, min_p: 0.05, seed: 3 }),
    chat("top_k 1", { temperature: 1, top_k: 1, seed: 4 }),
    chat("penalties", { repetition_penalty: 1.3, presence_penalty: 0.5, frequency_penalty: 0.5, max_tokens: 24 }),
    chat("logit_bias", { logit_bias: { [first]: 8, [second]: -100 } }),
    chat("allowed_token_ids", { allowed_token_ids: [first, second, ...encode("sea")] }),
    chat("bad_words", { bad_words: ["the", "sea", "The"] }),
    chat("stop string", { stop: ["sea", "."], max_tokens: 40 }),
    chat("stop string, included", { stop: ["sea", "."], include_stop_str_in_output: true, max_tokens: 40 }),
    chat("stop_token_ids", { stop_token_ids: [first, second, ...encode(".")], max_tokens: 40 }),
    chat("min_tokens", { min_tokens: 8, stop: [" "], max_tokens: 24 }),
    ...(eosTokenId === null
      ? []
      : [
          chat("end of sequence", { logit_bias: { [eosTokenId]: 100 } }),
          chat("end of sequence, shown", { logit_bias: { [eosTokenId]: 100 }, skip_special_tokens: false }),
          chat("ignore_eos", { logit_bias: { [eosTokenId]: 100 }, ignore_eos: true, max_tokens: 4 }),
          chat("min_tokens before the end", { logit_bias: { [eosTokenId]: 100 }, min_tokens: 3 }),
          chat("end as a stop id", { logit_bias: { [eosTokenId]: 100 }, stop_token_ids: [eosTokenId] }),
        ]),
    chat("max_completion_tokens", { max_tokens: undefined, max_completion_tokens: 5 }),
    chat("one token", { max_tokens: 1 }),
    chat("several choices", { n: 3, temperature: 1, seed: 5 }),
    chat("no log-probabilities", { logprobs: false, top_logprobs: undefined, return_token_ids: false }),
    chat("many log-probabilities", { top_logprobs: 20, max_tokens: 3 }),
    chat("prompt_logprobs", { prompt_logprobs: 2, max_tokens: 3 }),
    chat("token ids as tokens", { return_tokens_as_token_ids: true }),
    chat("echo", { echo: true, messages: [QUESTION, assistant], add_generation_prompt: false }),
    chat("continue_final_message", {
      messages: [QUESTION, assistant],
      add_generation_prompt: false,
      continue_final_message: true,
    }),
    chat("truncate_prompt_tokens", { truncate_prompt_tokens: 8 }),
    chat("tools without a choice", { tools: [TOOL], tool_choice: "none" }),
    chat("cache_salt", { cache_salt: "s" }),
    chat("priority", { priority: 3 }),
    chat("repetition_detection", {
      logit_bias: { [first]: 100 },
      repetition_detection: { max_pattern_size: 2, min_count: 3 },
    }),
    chat("unknown fields", { user: "me", store: true, metadata: { a: "b" } }),
  ];
}

function streams(): Exchange[] {
  const stream = { stream: true };
  return [
    chat("stream", stream),
    chat("stream with usage", { ...stream, stream_options: { include_usage: true } }),
    chat("stream with continuous usage", {
      ...stream,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    }),
    chat("stream, sampled choices", { ...stream, n: 2, temperature: 1, seed: 6 }),
    chat("stream, stop string", { ...stream, stop: ["sea", "."], max_tokens: 40 }),
    chat("stream, Unicode", {
      ...stream,
      messages: [{ role: "user", content: "你好，请说一个短故事 😀" }],
      max_tokens: 24,
    }),
  ];
}

function constrained(): Exchange[] {
  const long = { max_tokens: 60 };
  const outputs = (name: string, structured_outputs: Record<string, unknown>) =>
    chat(`structured ${name}`, { ...long, structured_outputs });
  return [
    outputs("json", { json: SCHEMA }),
    outputs("regex", { regex: "[a-z]{3,8} [0-9]{2}" }),
    outputs("choice", { choice: ["red", "green", "blue"] }),
    outputs("grammar", { grammar: 'root ::= "yes" | "no" " " [0-9]+' }),
    outputs("structural tag", {
      structural_tag: JSON.stringify({
        type: "structural_tag",
        format: { type: "tag", begin: "<a>", content: { type: "json_schema", json_schema: SCHEMA }, end: "</a>" },
      }),
    }),
    chat("response_format json_schema", {
      ...long,
      response_format: { type: "json_schema", json_schema: { name: "person", schema: SCHEMA } },
    }),
    chat("response_format json_object", { max_tokens: 24, response_format: { type: "json_object" } }),
    chat("structured stream", { ...long, stream: true, structured_outputs: { json: SCHEMA } }),
    chat("structured choices", { ...long, n: 2, temperature: 1, seed: 8, structured_outputs: { json: SCHEMA } }),
  ];
}

function completions(ids: readonly number[], first: number): Exchange[] {
  const complete = (name: string, fields: Record<string, unknown>): Exchange => ({
    name: `completion ${name}`,
    path: COMPLETIONS,
    body: { prompt: "The sea is", temperature: 0, max_tokens: 8, ...fields },
  });
  return [
    complete("of a text", {}),
    complete("of token ids", { prompt: ids, return_token_ids: true }),
    complete("of several prompts", { prompt: ["The sea", "A mountain"] }),
    complete("with log-probabilities", { logprobs: 3 }),
    complete("with log-probabilities 0", { logprobs: 0, return_tokens_as_token_ids: true }),
    complete("with echo", { echo: true, logprobs: 1 }),
    complete("with prompt_logprobs", { prompt_logprobs: 1 }),
    complete("with a stop string", { stop: [" "], max_tokens: 20 }),
    complete("sampled", { temperature: 1, seed: 9, n: 2, logprobs: 1 }),
    complete("streamed", { stream: true, logprobs: 1, stream_options: { include_usage: true } }),
    complete("streamed ids", { prompt: ids, stream: true, return_token_ids: true }),
    complete("biased", { logit_bias: { [first]: 5 } }),
    complete("without special tokens", { add_special_tokens: false }),
  ];
}

function texts(ids: readonly number[]): Exchange[] {
  return [
    { name: "tokenize a text", path: "/tokenize", body: { prompt: "The sea is 你好 😀" } },
    { name: "tokenize messages", path: "/tokenize", body: { messages: MESSAGES } },
    { name: "detokenize", path: "/detokenize", body: { tokens: ids } },
  ];
}

function refused({ maxModelLen }: ModelFacts): Exchange[] {
  return [
    chat("error: temperature", { temperature: -1 }),
    chat("error: top_p", { top_p: 2 }),
    chat("error: model", { model: "no-such-model" }),
    chat("error: messages", { messages: [] }),
    chat("error: n", { n: 0 }),
    chat("error: too many log-probabilities", { top_logprobs: 1000 }),
    chat("error: max_tokens", { max_tokens: maxModelLen * 2 }),
    chat("error: long prompt", { messages: [{ role: "user", content: "word ".repeat(maxModelLen * 2) }] }),
    chat("error: regex", { structured_outputs: { regex: "(" } }),
    chat("error: two constraints", { structured_outputs: { regex: "a", choice: ["a"] } }),
    chat("error: unknown token", { allowed_token_ids: [10_000_000] }),
    chat("error: prompt_logprobs in a stream", { stream: true, prompt_logprobs: 1 }),
  ];
}
