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

/** Requests of a kind: these fields, and what makes one long. */
const asking =
  (path: string, usual: object) =>
  (name: string, long: () => object): LongWork => ({ name, path, body: () => ({ ...usual, ...long() }) });
const chat = asking(CHAT, { ...short, messages: hello });
const completion = asking("/v1/completions", short);
const response = asking("/v1/responses", { max_output_tokens: 16 });
const message = asking("/v1/messages", { ...short, messages: hello });
const training = asking("/v1/preview/training-jobs", { model_id: NO_MODEL });
/** A job with one trajectory. */
const trajectory = (name: string, long: () => object): LongWork =>
  training(name, () => {
    const usual = { messages_and_choices: [user("hi"), { role: "assistant", content: "x" }], reward: 1 };
    return { trajectory_groups: [{ trajectories: [{ ...usual, ...long() }] }] };
  });

export const LONG_WORK: LongWork[] = [
  chat("harmless", () => ({})),
  chat("chat_template_kwargs", () => ({ chat_template_kwargs: fields(199_000) })),
  chat("chat_template_kwargs, one list", () => ({ chat_template_kwargs: { a: many(199_000, Number) } })),
  chat("unknown fields", () => ({ ...fields(190_000) })),
  chat("unknown field, many values", () => ({ x: many(95_000, () => ({})) })),
  chat("tool_calls in one message", () => ({
    messages: [...hello, { role: "assistant", tool_calls: many(28_000, call) }, ...hello],
  })),
  chat("tool_calls in many messages", () => ({
    messages: many(30, () => ({ role: "assistant", tool_calls: many(900, call) })),
  })),
  chat("tools", () => ({ tools: many(20_000, tool) })),
  chat("tools, required", () => ({ tools: many(20_000, tool), tool_choice: "required" })),
  chat("one tool, many properties", () => ({
    tools: [
      {
        type: "function",
        function: { name: "t", parameters: { type: "object", properties: fields(60_000, () => ({})) } },
      },
    ],
  })),
  chat("documents", () => ({ documents: many(60_000, (i) => ({ title: `${i}`, text: "x" })) })),
  chat("content parts", () => ({
    messages: [{ role: "user", content: many(60_000, () => ({ type: "text", text: "x" })) }],
  })),
  chat("messages", () => ({ messages: many(40_000, () => user("x")), truncate_prompt_tokens: 10 })),
  chat("messages below the bound", () => ({ messages: many(10_000, () => user("x")), truncate_prompt_tokens: 10 })),
  chat("63 messages of tool calls", () => ({
    messages: many(63, () => ({ role: "assistant", content: "x".repeat(1000), tool_calls: many(100, call) })),
    truncate_prompt_tokens: 10,
  })),
  chat("logit_bias", () => ({ logit_bias: Object.fromEntries(many(190_000, (i) => [i, 1])) })),
  chat("stop", () => ({ stop: many(190_000, (i) => `s${i}`) })),
  chat("stop_token_ids", () => ({ stop_token_ids: many(199_000, Number) })),
  chat("allowed_token_ids", () => ({ allowed_token_ids: many(199_000, Number) })),
  chat("bad_words", () => ({ bad_words: many(190_000, (i) => `s${i}`) })),
  chat("logprob_token_ids", () => ({ logprobs: true, logprob_token_ids: many(199_000, Number) })),
  chat("json_schema", () => ({
    response_format: {
      type: "json_schema",
      json_schema: { name: "s", schema: { properties: fields(60_000, () => ({})) } },
    },
  })),
  chat("json_schema, one enum", () => ({
    response_format: { type: "json_schema", json_schema: { name: "s", schema: { enum: many(190_000, String) } } },
  })),
  chat("choice", () => ({ structured_outputs: { choice: many(190_000, (i) => `s${i}`) } })),
  chat("vllm_xargs", () => ({ vllm_xargs: fields(190_000) })),
  chat("metadata", () => ({ metadata: fields(190_000, String) })),
  chat("deep kwargs", () => ({ chat_template_kwargs: { enable_thinking: many(700, () => nested(250)) } })),
  chat("wrong values", () => ({ messages: many(60_000, () => ({ role: 1 })) })),
  chat("numbers to mark", () => ({ chat_template_kwargs: { a: many(199_000, () => 1.5e300) } })),
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
  chat("arguments as text", () => ({
    messages: [
      ...hello,
      {
        role: "assistant",
        tool_calls: [{ ...call(0), function: { name: "t", arguments: JSON.stringify(fields(150_000)) } }],
      },
    ],
  })),
  chat("arguments as text, a list", () => ({
    messages: [
      ...hello,
      {
        role: "assistant",
        tool_calls: [{ ...call(0), function: { name: "t", arguments: `{"a":[${"1,".repeat(1_900_000)}1]}` } }],
      },
    ],
  })),
  chat("arguments as text, empty objects", () => ({
    messages: [
      ...hello,
      {
        role: "assistant",
        tool_calls: [{ ...call(0), function: { name: "t", arguments: `{"a":[${"{},".repeat(1_200_000)}1]}` } }],
      },
    ],
  })),
  chat("chat_template", () => ({ chat_template: "{{ messages }}".repeat(18_000) })),
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
  completion("prompt of ids", () => ({ prompt: many(199_000, () => 50) })),
  completion("prompt of ids, cut", () => ({ prompt: many(199_000, () => 50), truncate_prompt_tokens: 10 })),
  completion("prompts of ids", () => ({ prompt: many(60_000, () => [50]) })),
  completion("prompts", () => ({ prompt: many(100_000, () => "a") })),
  completion("64 prompts with bias", () => ({
    prompt: many(64, () => "a"),
    logit_bias: Object.fromEntries(many(300, (i) => [i, 1])),
    stop_token_ids: many(100_000, (i) => i % 500),
    bad_words: many(1000, (i) => `s${i}`),
  })),
  completion("prompt of 3 MiB", () => ({ prompt: "ab ".repeat(1_000_000), truncate_prompt_tokens: 10 })),
  completion("suffix, echo, logprobs", () => ({ prompt: "a".repeat(400), echo: true, logprobs: 5, n: 32 })),
  completion("32 prompts, echo, logprobs", () => ({
    prompt: many(32, () => many(480, (i) => 100 + (i % 150))),
    echo: true,
    logprobs: 20,
    n: 2,
  })),
  completion("prompt_logprobs", () => ({ prompt: many(480, (i) => 100 + (i % 150)), prompt_logprobs: 20, n: 64 })),
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
  completion("1,000 prompts with bias", () => ({
    prompt: many(1000, () => [5]),
    logit_bias: Object.fromEntries(many(58_000, (i) => [i % 256, 1])),
    allowed_token_ids: many(70_000, (i) => i % 250),
  })),
  completion("1,000 prompts with stops", () => ({
    prompt: many(1000, () => [5]),
    stop: many(1000, (i) => `${i}`.padStart(64, "é")),
  })),
  ...Object.entries(TEXTS).map(
    ([name, text]): LongWork => ({
      name: `bad_words of ${name}`,
      path: CHAT,
      body: () => ({ ...short, messages: hello, bad_words: many(64, () => `x${text(60_000).slice(0, 990)}`) }),
    }),
  ),
  response("responses input", () => ({ input: many(60_000, () => user("x")) })),
  response("responses calls", () => ({
    input: many(30_000, (i) => ({ type: "function_call", call_id: `${i}`, name: "t", arguments: "{}" })),
  })),
  response("responses tools", () => ({
    input: "hi",
    tools: many(20_000, (i) => ({ type: "function", name: `t${i}`, parameters: {} })),
  })),
  response("responses metadata", () => ({ input: "hi", metadata: fields(190_000, String) })),
  message("messages blocks", () => ({
    messages: [{ role: "user", content: many(60_000, () => ({ type: "text", text: "x" })) }],
  })),
  message("messages tools", () => ({
    tools: many(20_000, (i) => ({ name: `t${i}`, input_schema: { type: "object" } })),
  })),
  message("messages tool_use", () => ({
    messages: [
      ...hello,
      {
        role: "assistant",
        content: many(30_000, (i) => ({ type: "tool_use", id: `${i}`, name: "t", input: { a: 1 } })),
      },
    ],
  })),
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
  chat("a long reply with log-probabilities", () => ({
    max_tokens: 200,
    ignore_eos: true,
    n: 8,
    logprobs: true,
    top_logprobs: 20,
  })),
  response("a long response with log-probabilities", () => ({
    ...{ input: "hi", include: ["message.output_text.logprobs"], top_logprobs: 20 },
    max_output_tokens: 480,
    stream: true,
  })),
  chat("chat_template_kwargs, as many as allowed", () => ({ chat_template_kwargs: fields(999) })),
  chat("kwargs in one variable", () => ({ chat_template_kwargs: { enable_thinking: fields(29_000) } })),
  chat("tool_calls, as many as allowed", () => ({
    messages: [...hello, { role: "assistant", tool_calls: many(4_200, call) }, ...hello],
  })),
  chat("tools, as many as allowed", () => ({ tools: many(4_200, tool) })),
  chat("documents, as many as allowed", () => ({ documents: many(11_900, (i) => ({ title: `${i}`, text: "x" })) })),
  chat("content parts, as many as allowed", () => ({
    messages: [{ role: "user", content: many(11_500, () => ({ type: "text", text: "x" })) }],
  })),
  chat("logit_bias, as many as allowed", () => ({ logit_bias: Object.fromEntries(many(59_000, (i) => [i, 1])) })),
  chat("stop, as many as allowed", () => ({ stop: many(59_900, (i) => `s${i}`) })),
  chat("bad_words, as many as allowed", () => ({ bad_words: many(59_900, (i) => `s${i}`) })),
  chat("one schema, as much as allowed", () => ({
    response_format: {
      type: "json_schema",
      json_schema: { name: "s", schema: { properties: fields(29_000, () => ({})) } },
    },
  })),
  chat("one enum, as much as allowed", () => ({
    response_format: { type: "json_schema", json_schema: { name: "s", schema: { enum: many(59_000, String) } } },
  })),
  chat("metadata, as much as allowed", () => ({ metadata: fields(29_000, String) })),
  chat("arguments as text, as much as allowed", () => ({
    messages: [
      ...hello,
      {
        role: "assistant",
        tool_calls: [{ ...call(0), function: { name: "t", arguments: JSON.stringify(fields(29_000, String)) } }],
      },
    ],
  })),
  response("responses input, as much as allowed", () => ({ input: many(2_000, () => user("x")) })),
  response("responses calls, as many as allowed", () => ({
    input: many(6_000, (i) => ({ type: "function_call", call_id: `${i}`, name: "t", arguments: "{}" })),
  })),
  response("responses metadata, as much as allowed", () => ({ input: "hi", metadata: fields(29_000, String) })),
  message("messages tool_use, as many as allowed", () => ({
    messages: [
      ...hello,
      {
        role: "assistant",
        content: many(4_500, (i) => ({ type: "tool_use", id: `${i}`, name: "t", input: { a: 1 } })),
      },
      ...hello,
    ],
  })),
  message("messages tools, as many as allowed", () => ({
    tools: many(6_500, (i) => ({ name: `t${i}`, input_schema: { type: "object" } })),
  })),
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
  training("training fields", () => ({ trajectory_groups: [], ...fields(300_000) })),
  training("training metadata", () => ({
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
  })),
  trajectory("training messages", () => ({ messages_and_choices: many(100_000, () => user("hi")) })),
  training("training groups", () => ({ trajectory_groups: many(300_000, () => ({})) })),
  trajectory("training tools", () => ({ messages_and_choices: [user("hi")], tools: many(60_000, tool) })),
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
  trajectory("training logprobs", () => ({
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
  })),
  {
    name: "sft",
    path: "/v1/preview/sft-training-jobs",
    body: () => ({
      model_id: NO_MODEL,
      training_trajectories: many(50_000, () => ({ messages: hello })),
    }),
  },
  trajectory("training metadata, as much as allowed", () => ({ metadata: many(24, () => fields(9_900)) })),
  trajectory("training messages, as many as allowed", () => ({ messages_and_choices: many(19_900, () => user("hi")) })),
];
