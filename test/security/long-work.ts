// Requests that make a server work long, each within the limits of a body. Every one is of a kind: many values, many
// fields, a long text, a deep value, a long reply.

export interface LongWork {
  name: string;
  path: string;
  body(): unknown;
}

const many = <T>(count: number, item: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => item(i));
const fields = (count: number, value: (i: number) => unknown = (i) => i) =>
  Object.fromEntries(many(count, (i) => [`k${i}`, value(i)]));
const user = (content: string) => ({ role: "user", content });
const tool = (i: number) => ({ type: "function", function: { name: `t${i}`, parameters: { type: "object" } } });
const call = (i: number) => ({ id: `c${i}`, type: "function", function: { name: "t", arguments: '{"a":1}' } });
const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

/** Texts of n characters that tokenizers find hard. */
const TEXTS: Record<string, (n: number) => string> = {
  spaces: (n) => " ".repeat(n),
  "one letter": (n) => "a".repeat(n),
  digits: (n) => "7".repeat(n),
  newlines: (n) => "\n".repeat(n),
  "words apart": (n) => "a  ".repeat(n / 3),
  emoji: (n) => "😀".repeat(n / 2),
  "combining marks": (n) => `a${"\u0301".repeat(n - 1)}`,
  "control tokens": (n) => "<|im_start|>".repeat(n / 12),
  "almost control tokens": (n) => "<|im_star".repeat(n / 9),
  "three-byte letters": (n) => "日".repeat(n),
  "all letters": (n) => String.fromCharCode(...many(50_000, (i) => 0x4e00 + (i % 20_000))).repeat(n / 50_000),
};

/** Such a text of so many bytes. */
const ofBytes = (text: (n: number) => string, bytes: number): string =>
  text(Math.floor((bytes * 60_000) / Buffer.byteLength(text(60_000)) / 60) * 60);

const NO_MODEL = "00000000-0000-0000-0000-000000000000";
const CHAT = "/v1/chat/completions";
const short = { max_tokens: 1 };
const hello = [user("hello")];

export const LONG_WORK: LongWork[] = [
  { name: "harmless", path: CHAT, body: () => ({ ...short, messages: hello }) },
  {
    name: "chat_template_kwargs",
    path: CHAT,
    body: () => ({ ...short, messages: hello, chat_template_kwargs: fields(199_000) }),
  },
  {
    name: "chat_template_kwargs, one list",
    path: CHAT,
    body: () => ({ ...short, messages: hello, chat_template_kwargs: { a: many(199_000, Number) } }),
  },
  { name: "unknown fields", path: CHAT, body: () => ({ ...short, messages: hello, ...fields(190_000) }) },
  {
    name: "unknown field, many values",
    path: CHAT,
    body: () => ({ ...short, messages: hello, x: many(95_000, () => ({})) }),
  },
  {
    name: "tool_calls in one message",
    path: CHAT,
    body: () => ({ ...short, messages: [...hello, { role: "assistant", tool_calls: many(28_000, call) }, ...hello] }),
  },
  {
    name: "tool_calls in many messages",
    path: CHAT,
    body: () => ({ ...short, messages: many(30, () => ({ role: "assistant", tool_calls: many(900, call) })) }),
  },
  { name: "tools", path: CHAT, body: () => ({ ...short, messages: hello, tools: many(20_000, tool) }) },
  {
    name: "tools, required",
    path: CHAT,
    body: () => ({ ...short, messages: hello, tools: many(20_000, tool), tool_choice: "required" }),
  },
  {
    name: "one tool, many properties",
    path: CHAT,
    body: () => ({
      ...short,
      messages: hello,
      tools: [
        {
          type: "function",
          function: { name: "t", parameters: { type: "object", properties: fields(60_000, () => ({})) } },
        },
      ],
    }),
  },
  {
    name: "documents",
    path: CHAT,
    body: () => ({ ...short, messages: hello, documents: many(60_000, (i) => ({ title: `${i}`, text: "x" })) }),
  },
  {
    name: "content parts",
    path: CHAT,
    body: () => ({
      ...short,
      messages: [{ role: "user", content: many(60_000, () => ({ type: "text", text: "x" })) }],
    }),
  },
  {
    name: "messages",
    path: CHAT,
    body: () => ({ ...short, messages: many(40_000, () => user("x")), truncate_prompt_tokens: 10 }),
  },
  {
    name: "messages below the bound",
    path: CHAT,
    body: () => ({ ...short, messages: many(10_000, () => user("x")), truncate_prompt_tokens: 10 }),
  },
  {
    name: "63 messages of tool calls",
    path: CHAT,
    body: () => ({
      ...short,
      messages: many(63, () => ({ role: "assistant", content: "x".repeat(1000), tool_calls: many(100, call) })),
      truncate_prompt_tokens: 10,
    }),
  },
  {
    name: "logit_bias",
    path: CHAT,
    body: () => ({ ...short, messages: hello, logit_bias: Object.fromEntries(many(190_000, (i) => [i, 1])) }),
  },
  { name: "stop", path: CHAT, body: () => ({ ...short, messages: hello, stop: many(190_000, (i) => `s${i}`) }) },
  {
    name: "stop_token_ids",
    path: CHAT,
    body: () => ({ ...short, messages: hello, stop_token_ids: many(199_000, Number) }),
  },
  {
    name: "allowed_token_ids",
    path: CHAT,
    body: () => ({ ...short, messages: hello, allowed_token_ids: many(199_000, Number) }),
  },
  {
    name: "bad_words",
    path: CHAT,
    body: () => ({ ...short, messages: hello, bad_words: many(190_000, (i) => `s${i}`) }),
  },
  {
    name: "logprob_token_ids",
    path: CHAT,
    body: () => ({ ...short, messages: hello, logprobs: true, logprob_token_ids: many(199_000, Number) }),
  },
  {
    name: "json_schema",
    path: CHAT,
    body: () => ({
      ...short,
      messages: hello,
      response_format: {
        type: "json_schema",
        json_schema: { name: "s", schema: { properties: fields(60_000, () => ({})) } },
      },
    }),
  },
  {
    name: "json_schema, one enum",
    path: CHAT,
    body: () => ({
      ...short,
      messages: hello,
      response_format: { type: "json_schema", json_schema: { name: "s", schema: { enum: many(190_000, String) } } },
    }),
  },
  {
    name: "choice",
    path: CHAT,
    body: () => ({ ...short, messages: hello, structured_outputs: { choice: many(190_000, (i) => `s${i}`) } }),
  },
  { name: "vllm_xargs", path: CHAT, body: () => ({ ...short, messages: hello, vllm_xargs: fields(190_000) }) },
  { name: "metadata", path: CHAT, body: () => ({ ...short, messages: hello, metadata: fields(190_000, String) }) },
  {
    name: "deep kwargs",
    path: CHAT,
    body: () => ({
      ...short,
      messages: hello,
      chat_template_kwargs: { enable_thinking: many(700, () => nested(250)) },
    }),
  },
  { name: "wrong values", path: CHAT, body: () => ({ ...short, messages: many(60_000, () => ({ role: 1 })) }) },
  {
    name: "numbers to mark",
    path: CHAT,
    body: () => ({ ...short, messages: hello, chat_template_kwargs: { a: many(199_000, () => 1.5e300) } }),
  },
  {
    name: "long numbers",
    path: CHAT,
    body: () =>
      `{"messages":[{"role":"user","content":"hi"}],"max_tokens":1,"chat_template_kwargs":{"a":[${many(2, () => "1".repeat(1_500_000)).join(",")}]}}`,
  },
  {
    name: "long integer fields",
    path: CHAT,
    body: () =>
      `{"messages":[{"role":"user","content":"hi"}],"max_tokens":1,${many(100_000, (i) => `"a${i}":9007199254740993`).join(",")}}`,
  },
  {
    name: "white space",
    path: CHAT,
    body: () => `{"messages":[{"role":"user","content":"hi"}],"max_tokens":1${" ".repeat(4_000_000)}}`,
  },
  {
    name: "escapes",
    path: CHAT,
    body: () => `{"messages":[{"role":"user","content":"${"\\u0041".repeat(650_000)}"}],"max_tokens":1}`,
  },
  {
    name: "arguments as text",
    path: CHAT,
    body: () => ({
      ...short,
      messages: [
        ...hello,
        {
          role: "assistant",
          tool_calls: [{ ...call(0), function: { name: "t", arguments: JSON.stringify(fields(150_000)) } }],
        },
      ],
    }),
  },
  {
    name: "arguments as text, a list",
    path: CHAT,
    body: () => ({
      ...short,
      messages: [
        ...hello,
        {
          role: "assistant",
          tool_calls: [{ ...call(0), function: { name: "t", arguments: `{"a":[${"1,".repeat(1_900_000)}1]}` } }],
        },
      ],
    }),
  },
  {
    name: "arguments as text, empty objects",
    path: CHAT,
    body: () => ({
      ...short,
      messages: [
        ...hello,
        {
          role: "assistant",
          tool_calls: [{ ...call(0), function: { name: "t", arguments: `{"a":[${"{},".repeat(1_200_000)}1]}` } }],
        },
      ],
    }),
  },
  {
    name: "chat_template",
    path: CHAT,
    body: () => ({ ...short, messages: hello, chat_template: "{{ messages }}".repeat(18_000) }),
  },
  ...Object.entries(TEXTS).flatMap(([name, text]): LongWork[] => [
    { name: `tokenize 1 MiB: ${name}`, path: "/tokenize", body: () => ({ prompt: ofBytes(text, 1_048_000) }) },
    {
      name: `tokenize a chat of 1 MiB: ${name}`,
      path: "/tokenize",
      body: () => ({ messages: [user(ofBytes(text, 1_000_000))] }),
    },
    {
      name: `a cut chat of 3 MiB: ${name}`,
      path: CHAT,
      body: () => ({
        ...short,
        messages: [user(ofBytes(text, 3_000_000))],
        truncate_prompt_tokens: 10,
      }),
    },
    {
      name: `a cut prompt of 3 MiB: ${name}`,
      path: "/v1/completions",
      body: () => ({ ...short, prompt: ofBytes(text, 3_000_000), truncate_prompt_tokens: 10 }),
    },
  ]),
  {
    name: "tokenize, token_strs",
    path: "/tokenize",
    body: () => ({ prompt: "ab ".repeat(340_000), return_token_strs: true }),
  },
  { name: "detokenize", path: "/detokenize", body: () => ({ tokens: many(199_000, (i) => 100 + (i % 300)) }) },
  { name: "prompt of ids", path: "/v1/completions", body: () => ({ ...short, prompt: many(199_000, () => 50) }) },
  {
    name: "prompt of ids, cut",
    path: "/v1/completions",
    body: () => ({ ...short, prompt: many(199_000, () => 50), truncate_prompt_tokens: 10 }),
  },
  { name: "prompts of ids", path: "/v1/completions", body: () => ({ ...short, prompt: many(60_000, () => [50]) }) },
  { name: "prompts", path: "/v1/completions", body: () => ({ ...short, prompt: many(100_000, () => "a") }) },
  {
    name: "64 prompts with bias",
    path: "/v1/completions",
    body: () => ({
      ...short,
      prompt: many(64, () => "a"),
      logit_bias: Object.fromEntries(many(300, (i) => [i, 1])),
      stop_token_ids: many(100_000, (i) => i % 500),
      bad_words: many(1000, (i) => `s${i}`),
    }),
  },
  {
    name: "prompt of 3 MiB",
    path: "/v1/completions",
    body: () => ({ ...short, prompt: "ab ".repeat(1_000_000), truncate_prompt_tokens: 10 }),
  },
  {
    name: "suffix, echo, logprobs",
    path: "/v1/completions",
    body: () => ({ max_tokens: 1, prompt: "a".repeat(400), echo: true, logprobs: 5, n: 32 }),
  },
  {
    name: "32 prompts, echo, logprobs",
    path: "/v1/completions",
    body: () => ({
      max_tokens: 1,
      prompt: many(32, () => many(480, (i) => 100 + (i % 150))),
      echo: true,
      logprobs: 20,
      n: 2,
    }),
  },
  {
    name: "prompt_logprobs",
    path: "/v1/completions",
    body: () => ({ max_tokens: 1, prompt: many(480, (i) => 100 + (i % 150)), prompt_logprobs: 20, n: 64 }),
  },
  {
    name: "batch",
    path: "/v1/chat/completions/batch",
    body: () => ({
      ...short,
      messages: many(60, () => many(60, () => user("x".repeat(100)))),
      logit_bias: Object.fromEntries(many(300, (i) => [i, 1])),
    }),
  },
  {
    name: "batch of many",
    path: "/v1/chat/completions/batch",
    body: () => ({ ...short, messages: many(40_000, () => hello) }),
  },
  {
    name: "batch, ids",
    path: "/v1/chat/completions/batch",
    body: () => ({
      ...short,
      messages: many(64, () => hello),
      stop_token_ids: many(150_000, (i) => i % 500),
      allowed_token_ids: many(40_000, (i) => i % 500),
    }),
  },
  {
    name: "batch, one schema as text",
    path: "/v1/chat/completions/batch",
    body: () => ({
      ...short,
      messages: many(1000, () => hello),
      structured_outputs: { json: JSON.stringify({ properties: fields(29_000, () => ({})) }) },
    }),
  },
  {
    name: "batch, stops",
    path: "/v1/chat/completions/batch",
    body: () => ({ ...short, messages: many(5000, () => hello), stop: many(29_000, (i) => `s${i}`) }),
  },
  {
    name: "1,000 prompts with bias",
    path: "/v1/completions",
    body: () => ({
      ...short,
      prompt: many(1000, () => [5]),
      logit_bias: Object.fromEntries(many(58_000, (i) => [i % 256, 1])),
      allowed_token_ids: many(70_000, (i) => i % 250),
    }),
  },
  {
    name: "1,000 prompts with stops",
    path: "/v1/completions",
    body: () => ({ ...short, prompt: many(1000, () => [5]), stop: many(1000, (i) => `${i}`.padStart(64, "é")) }),
  },
  ...Object.entries(TEXTS).map(
    ([name, text]): LongWork => ({
      name: `bad_words of ${name}`,
      path: CHAT,
      body: () => ({ ...short, messages: hello, bad_words: many(64, () => `x${text(60_000).slice(0, 990)}`) }),
    }),
  ),
  {
    name: "responses input",
    path: "/v1/responses",
    body: () => ({ max_output_tokens: 16, input: many(60_000, () => user("x")) }),
  },
  {
    name: "responses calls",
    path: "/v1/responses",
    body: () => ({
      max_output_tokens: 16,
      input: many(30_000, (i) => ({ type: "function_call", call_id: `${i}`, name: "t", arguments: "{}" })),
    }),
  },
  {
    name: "responses tools",
    path: "/v1/responses",
    body: () => ({
      max_output_tokens: 16,
      input: "hi",
      tools: many(20_000, (i) => ({ type: "function", name: `t${i}`, parameters: {} })),
    }),
  },
  {
    name: "responses metadata",
    path: "/v1/responses",
    body: () => ({ max_output_tokens: 16, input: "hi", metadata: fields(190_000, String) }),
  },
  {
    name: "messages blocks",
    path: "/v1/messages",
    body: () => ({
      max_tokens: 1,
      messages: [{ role: "user", content: many(60_000, () => ({ type: "text", text: "x" })) }],
    }),
  },
  {
    name: "messages tools",
    path: "/v1/messages",
    body: () => ({
      max_tokens: 1,
      messages: hello,
      tools: many(20_000, (i) => ({ name: `t${i}`, input_schema: { type: "object" } })),
    }),
  },
  {
    name: "messages tool_use",
    path: "/v1/messages",
    body: () => ({
      max_tokens: 1,
      messages: [
        ...hello,
        {
          role: "assistant",
          content: many(30_000, (i) => ({ type: "tool_use", id: `${i}`, name: "t", input: { a: 1 } })),
        },
      ],
    }),
  },
  {
    name: "count_tokens",
    path: "/v1/messages/count_tokens",
    body: () => ({
      messages: many(60, () => user("x ".repeat(5000))),
      tools: many(3000, (i) => ({ name: `t${i}`, input_schema: { type: "object" } })),
    }),
  },
  {
    name: "generate ids",
    path: "/inference/v1/generate",
    body: () => ({ token_ids: many(199_000, () => 50), sampling_params: { max_tokens: 1 } }),
  },
  {
    name: "generate masks",
    path: "/inference/v1/generate",
    body: () => ({
      token_ids: [50],
      sampling_params: {
        max_tokens: 1,
        allowed_token_ids: many(99_000, (i) => i % 500),
        stop_token_ids: many(99_000, (i) => i % 500),
      },
    }),
  },
  {
    name: "inspect",
    path: "/v1/structured_outputs/inspect",
    body: () => ({ constraint: { choice: many(150_000, (i) => `s${i}`) }, text: "s" }),
  },
  {
    name: "a long reply with log-probabilities",
    path: CHAT,
    body: () => ({ messages: hello, max_tokens: 200, ignore_eos: true, n: 8, logprobs: true, top_logprobs: 20 }),
  },
  {
    name: "a long response with log-probabilities",
    path: "/v1/responses",
    body: () => ({
      ...{ input: "hi", include: ["message.output_text.logprobs"], top_logprobs: 20 },
      max_output_tokens: 480,
      stream: true,
    }),
  },
  {
    name: "chat_template_kwargs, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, chat_template_kwargs: fields(999) }),
  },
  {
    name: "kwargs in one variable",
    path: CHAT,
    body: () => ({ ...short, messages: hello, chat_template_kwargs: { enable_thinking: fields(29_000) } }),
  },
  {
    name: "tool_calls, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: [...hello, { role: "assistant", tool_calls: many(4_200, call) }, ...hello] }),
  },
  {
    name: "tools, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, tools: many(4_200, tool) }),
  },
  {
    name: "documents, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, documents: many(11_900, (i) => ({ title: `${i}`, text: "x" })) }),
  },
  {
    name: "content parts, as many as allowed",
    path: CHAT,
    body: () => ({
      ...short,
      messages: [{ role: "user", content: many(11_500, () => ({ type: "text", text: "x" })) }],
    }),
  },
  {
    name: "logit_bias, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, logit_bias: Object.fromEntries(many(59_000, (i) => [i, 1])) }),
  },
  {
    name: "stop, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, stop: many(59_900, (i) => `s${i}`) }),
  },
  {
    name: "bad_words, as many as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, bad_words: many(59_900, (i) => `s${i}`) }),
  },
  {
    name: "one schema, as much as allowed",
    path: CHAT,
    body: () => ({
      ...short,
      messages: hello,
      response_format: {
        type: "json_schema",
        json_schema: { name: "s", schema: { properties: fields(29_000, () => ({})) } },
      },
    }),
  },
  {
    name: "one enum, as much as allowed",
    path: CHAT,
    body: () => ({
      ...short,
      messages: hello,
      response_format: { type: "json_schema", json_schema: { name: "s", schema: { enum: many(59_000, String) } } },
    }),
  },
  {
    name: "metadata, as much as allowed",
    path: CHAT,
    body: () => ({ ...short, messages: hello, metadata: fields(29_000, String) }),
  },
  {
    name: "arguments as text, as much as allowed",
    path: CHAT,
    body: () => ({
      ...short,
      messages: [
        ...hello,
        {
          role: "assistant",
          tool_calls: [{ ...call(0), function: { name: "t", arguments: JSON.stringify(fields(29_000, String)) } }],
        },
      ],
    }),
  },
  {
    name: "responses input, as much as allowed",
    path: "/v1/responses",
    body: () => ({ max_output_tokens: 16, input: many(2_000, () => user("x")) }),
  },
  {
    name: "responses calls, as many as allowed",
    path: "/v1/responses",
    body: () => ({
      max_output_tokens: 16,
      input: many(6_000, (i) => ({ type: "function_call", call_id: `${i}`, name: "t", arguments: "{}" })),
    }),
  },
  {
    name: "responses metadata, as much as allowed",
    path: "/v1/responses",
    body: () => ({ max_output_tokens: 16, input: "hi", metadata: fields(29_000, String) }),
  },
  {
    name: "messages tool_use, as many as allowed",
    path: "/v1/messages",
    body: () => ({
      max_tokens: 1,
      messages: [
        ...hello,
        {
          role: "assistant",
          content: many(4_500, (i) => ({ type: "tool_use", id: `${i}`, name: "t", input: { a: 1 } })),
        },
        ...hello,
      ],
    }),
  },
  {
    name: "messages tools, as many as allowed",
    path: "/v1/messages",
    body: () => ({
      max_tokens: 1,
      messages: hello,
      tools: many(6_500, (i) => ({ name: `t${i}`, input_schema: { type: "object" } })),
    }),
  },
  {
    name: "inspect a long text",
    path: "/v1/structured_outputs/inspect",
    body: () => ({ structured_outputs: { regex: "(?s).*" }, text: ofBytes(TEXTS.digits!, 3_900_000) }),
  },
  {
    name: "inspect, as much as allowed",
    path: "/v1/structured_outputs/inspect",
    body: () => ({ structured_outputs: { choice: many(59_000, (i) => `s${i}`) }, text: "s" }),
  },
  {
    name: "training fields",
    path: "/v1/preview/training-jobs",
    body: () => ({ model_id: NO_MODEL, trajectory_groups: [], ...fields(300_000) }),
  },
  {
    name: "training metadata",
    path: "/v1/preview/training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      trajectory_groups: [
        {
          trajectories: [
            {
              messages_and_choices: [user("hi"), { role: "assistant", content: "x" }],
              reward: 1,
              metadata: fields(500_000),
              metrics: fields(100_000),
            },
          ],
        },
      ],
      experimental_config: fields(100_000),
    }),
  },
  {
    name: "training messages",
    path: "/v1/preview/training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      trajectory_groups: [{ trajectories: [{ messages_and_choices: many(100_000, () => user("hi")), reward: 1 }] }],
    }),
  },
  {
    name: "training groups",
    path: "/v1/preview/training-jobs",
    body: () => ({ model_id: NO_MODEL, trajectory_groups: many(300_000, () => ({})) }),
  },
  {
    name: "training tools",
    path: "/v1/preview/training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      trajectory_groups: [
        { trajectories: [{ messages_and_choices: [user("hi")], reward: 1, tools: many(60_000, tool) }] },
      ],
    }),
  },
  ...["1.5", "1.0"].map(
    (number): LongWork => ({
      name: `training calls with numbers such as ${number}`,
      path: "/v1/preview/training-jobs",
      body: () =>
        `{"model_id":"${NO_MODEL}","trajectory_groups":[{"trajectories":[{"reward":1,"messages_and_choices":[{"role":"user",` +
        `"content":"hi"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":` +
        `{"a":[${many(1_900_000, () => number).join(",")}]}}}]}]}]}]}`,
    }),
  ),
  {
    name: "training logprobs",
    path: "/v1/preview/training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      trajectory_groups: [
        {
          trajectories: [
            {
              messages_and_choices: [
                user("hi"),
                {
                  finish_reason: "stop",
                  index: 0,
                  message: { role: "assistant", content: "x" },
                  logprobs: {
                    content: many(60_000, (i) => ({
                      token: `token_id:${i}`,
                      logprob: -1,
                      bytes: [1],
                      top_logprobs: [],
                    })),
                  },
                },
              ],
              reward: 1,
            },
          ],
        },
      ],
    }),
  },
  {
    name: "sft",
    path: "/v1/preview/sft-training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      training_trajectories: many(50_000, () => ({ messages: hello })),
    }),
  },
  {
    name: "training metadata, as much as allowed",
    path: "/v1/preview/training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      trajectory_groups: [
        {
          trajectories: [
            {
              messages_and_choices: [user("hi"), { role: "assistant", content: "x" }],
              reward: 1,
              metadata: many(24, () => fields(9_900)),
            },
          ],
        },
      ],
    }),
  },
  {
    name: "training messages, as many as allowed",
    path: "/v1/preview/training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      trajectory_groups: [{ trajectories: [{ messages_and_choices: many(19_900, () => user("hi")), reward: 1 }] }],
    }),
  },
];
