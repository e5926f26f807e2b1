// Fixed conversations in the form that templates get them: every role, tool calls and results, reasoning, parts, empty and
// awkward texts, with and without tools and a generation prompt.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Message = { [key: string]: Json };

const AWKWARD =
  "  Grüße, \"quoted\" 'single' \\ back\n\n\tTab & <b>tags</b> {{ braces }} 日本語 👩‍💻\u00a0\u2028 end \n";

const system: Message = { role: "system", content: "You are terse." };
const user: Message = { role: "user", content: "What is 12 + 30?" };
const reply: Message = { role: "assistant", content: "42" };
const again: Message = { role: "user", content: "And doubled?" };
const thoughtful: Message = {
  role: "assistant",
  content: "84",
  reasoning: "Twice 42.",
  reasoning_content: "Twice 42.",
};
const inlineThought: Message = { role: "assistant", content: "<think>\nTwice 42 is 84.\n</think>\n\n84" };

const call = (name: string, args: Json, id = "call_12345"): Message => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const calling = (calls: Message[], content: Json = ""): Message => ({ role: "assistant", content, tool_calls: calls });
const result = (content: string, id = "call_12345", name = "get_weather"): Message => ({
  role: "tool",
  content,
  tool_call_id: id,
  name,
});

const weather: Message = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a place.",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", description: "Where" },
        unit: { type: "string", enum: ["celsius", "fahrenheit"], default: "celsius" },
        days: { type: "array", items: { type: "integer", minimum: 1 } },
        where: { type: "object", properties: { lat: { type: "number" } }, required: ["lat"] },
      },
      required: ["city"],
    },
  },
};
const clock: Message = {
  type: "function",
  function: { name: "now", description: "The time.", parameters: { type: "object", properties: {} } },
};

const byCall = [
  system,
  { role: "user", content: "Weather in Paris?" },
  calling([call("get_weather", { city: "Paris", unit: "celsius", days: [1, 2], where: { lat: 48.85 } })]),
  result('{"temperature": 21.5, "sky": "clear"}'),
];
const twoCalls = [
  { role: "user", content: "Paris and Rome?" },
  calling(
    [call("get_weather", { city: "Paris" }, "call_aaaaa"), call("get_weather", { city: "Rome" }, "call_bbbbb")],
    "Both.",
  ),
  result("21", "call_aaaaa"),
  result("27", "call_bbbbb"),
  { role: "assistant", content: "21 and 27." },
  again,
];

const withParts = (messages: readonly Message[]): Message[] =>
  messages.map((message) =>
    typeof message.content === "string" && message.role !== "tool"
      ? { ...message, content: [{ type: "text", text: message.content }] }
      : message,
  );

const dialogues: Message[][] = [
  [user],
  [system, user],
  [user, reply, again],
  [system, user, reply, again],
  [system, user, reply, again, thoughtful, user],
  [user, inlineThought, again],
  [user, thoughtful, again, reply, user],
  [{ role: "user", content: AWKWARD }],
  [{ role: "system", content: AWKWARD }, user, { role: "assistant", content: AWKWARD }, user],
  [{ role: "user", content: "" }],
  [system, { role: "user", content: "a" }, { role: "assistant", content: "" }, { role: "user", content: "b" }],
  Array.from({ length: 21 }, (_, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content: `Turn ${i}.` })),
  [user, again],
  [reply, user],
  [{ role: "developer", content: "Be kind." }, user],
  [{ role: "user", content: "c", name: "ann" }],
];
const toolDialogues: Message[][] = [
  [user],
  byCall,
  [...byCall, { role: "assistant", content: "21.5 degrees." }, again],
  twoCalls,
  [system, user, calling([call("now", {})], null), result("noon", "call_12345", "now")],
  [
    user,
    calling([call("get_weather", { city: 'O"Brien', unit: null, flag: true, count: 3, share: 0.5 })]),
    result("x\ny"),
  ],
  [
    user,
    { ...calling([call("now", {})]), reasoning: "Ask.", reasoning_content: "Ask." },
    result("1", "call_12345", "now"),
    reply,
  ],
];

const COMMON = {
  bos_token: "<s>",
  eos_token: "</s>",
  pad_token: "<pad>",
  unk_token: "<unk>",
  tools: null,
  documents: null,
};

export const CONVERSATIONS: readonly Record<string, Json>[] = [
  ...dialogues.map((messages) => ({ ...COMMON, messages, add_generation_prompt: true })),
  ...dialogues.slice(0, 8).map((messages) => ({ ...COMMON, messages, add_generation_prompt: false })),
  ...dialogues
    .slice(0, 5)
    .map((messages) => ({ ...COMMON, messages, add_generation_prompt: true, enable_thinking: false })),
  ...dialogues
    .slice(3, 6)
    .map((messages) => ({ ...COMMON, messages, add_generation_prompt: true, enable_thinking: true })),
  ...dialogues
    .slice(1, 4)
    .map((messages) => ({ ...COMMON, messages: withParts(messages), add_generation_prompt: true })),
  ...toolDialogues.map((messages) => ({ ...COMMON, messages, tools: [weather, clock], add_generation_prompt: true })),
  ...toolDialogues.slice(1, 3).map((messages) => ({
    ...COMMON,
    messages: withParts(messages),
    tools: [weather],
    add_generation_prompt: false,
  })),
  {
    ...COMMON,
    messages: [system, user],
    documents: [{ title: "Sums", text: "12 + 30 = 42" }],
    add_generation_prompt: true,
    reasoning_effort: "low",
  },
];
