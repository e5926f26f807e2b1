// Choosing a tool, filling in its arguments and using its result. Names and parameter spellings vary from one
// conversation to the next, other tools are offered beside the right one, and some requests need no tool at all.

import { lexicon, toolAsksOf } from "./bank.ts";
import { assistant, type Conversation, type Message, type Tool, type ToolCall, user } from "./conversation.ts";
import { personName } from "./made-up.ts";
import { oneWord, plainQuestion } from "./one-word.ts";
import type { Rng } from "./rng.ts";
import { type Draw, pickWording, splitOf } from "./split.ts";
import { talk, topic } from "./talk.ts";
import { toolKinds } from "./tool-bank.ts";
import type { ParameterKind, ToolKind } from "./tool-parts.ts";
import { asTyped, say } from "./wording.ts";

interface Offer {
  tool: Tool;
  /** Variable of the wording -> the parameter's spelling in this conversation. */
  spelling: Record<string, string>;
}

export function offer(rng: Rng, kind: ToolKind): Offer {
  const spelling: Record<string, string> = {};
  const properties: Record<string, Record<string, unknown>> = {};
  const describe = rng.chance(0.4);
  for (const [variable, parameter] of Object.entries(kind.parameters)) {
    const free = parameter.keys.filter((key) => properties[key] === undefined);
    const key = rng.chance(0.5) ? (free[0] as string) : rng.pick(free);
    spelling[variable] = key;
    properties[key] = schemaOf(parameter, describe);
  }
  const name = rng.chance(0.4) ? (kind.names[0] as string) : rng.pick(kind.names);
  const required = Object.keys(properties);
  const tool: Tool = { type: "function", function: { name, parameters: { type: "object", properties, required } } };
  if (rng.chance(0.9)) tool.function.description = kind.about + (rng.chance(0.3) ? "." : "");
  return { tool, spelling };
}

function schemaOf(parameter: ParameterKind, describe: boolean): Record<string, unknown> {
  const schema: Record<string, unknown> = { type: parameter.type };
  if (parameter.enum !== undefined) schema.enum = parameter.enum;
  if (describe) schema.description = parameter.about;
  return schema;
}

export function others(rng: Rng, not: string[], count: number): Tool[] {
  const out: Tool[] = [];
  const taken = new Set(not);
  while (out.length < count) {
    const { tool } = offer(rng, rng.pick(toolKinds));
    if (taken.has(tool.function.name)) continue;
    taken.add(tool.function.name);
    out.push(tool);
  }
  return out;
}

export const call = (name: string, args: Record<string, unknown>): ToolCall => ({
  type: "function",
  id: "call_1",
  function: { name, arguments: args },
});

const allAsks = new Map<ToolKind, readonly string[]>(
  toolKinds.map((kind) => [kind, [...kind.asks, ...toolAsksOf(kind.names[0] as string)]]),
);
export const asksFor = (kind: ToolKind): readonly string[] => allAsks.get(kind) as readonly string[];

interface Request {
  prompt: string;
  values: Record<string, string | number>;
  args: Record<string, unknown>;
}

function request(draw: Draw, kind: ToolKind, spelling: Record<string, string>): Request {
  const { rng } = draw;
  const values: Record<string, string | number> = {};
  do {
    for (const [variable, parameter] of Object.entries(kind.parameters)) values[variable] = parameter.make(rng);
  } while (splitOf(`tool:${Object.values(values).join("/")}`) !== draw.split && rng.chance(0.98));
  const args: Record<string, unknown> = {};
  for (const [variable, key] of Object.entries(spelling)) args[key] = values[variable];
  return { prompt: asTyped(rng, say(rng, pickWording(draw, asksFor(kind)), values)), values, args };
}

/** The tool's answer: computed for sums, drawn for the rest. */
function resultOf(rng: Rng, kind: ToolKind, values: Record<string, string | number>): string {
  if (kind.names[0] === "add") return String(Number(values.a) + Number(values.b));
  if (kind.names[0] === "multiply") return String(Number(values.a) * Number(values.b));
  return kind.result(rng);
}

export function toolUse(draw: Draw): Conversation {
  const { rng } = draw;
  const style = rng.weighted([
    ["call", 6],
    ["result", 3],
    ["invented", 2],
    ["none", 2],
  ] as const);
  if (style === "invented") return inventedTool(draw);
  if (style === "none") return noTool(draw);
  const kind = rng.pick(toolKinds);
  const { tool, spelling } = offer(rng, kind);
  const siblings = toolKinds.filter((other) => other === kind).flatMap((other) => other.names);
  const tools = rng.shuffle([
    tool,
    ...others(
      rng,
      siblings,
      rng.weighted([
        [0, 2],
        [1, 3],
        [2, 3],
        [3, 2],
      ]),
    ),
  ]);
  const { prompt, values, args } = request(draw, kind, spelling);
  const name = tool.function.name;
  const thought = rng.chance(0.08) ? `The user needs the tool ${name}.` : undefined;
  const reply: Message = { role: "assistant", content: null, tool_calls: [call(name, args)] };
  if (thought !== undefined) reply.reasoning = thought;
  const messages = [user(prompt), reply];
  if (style === "call") {
    const conversation: Conversation = {
      family: "tool-call",
      messages,
      tools,
      check: { kind: "tool", name, arguments: args },
    };
    if (thought !== undefined) conversation.thinking = true;
    return conversation;
  }
  const r = resultOf(rng, kind, values);
  const returned = rng.chance(0.3)
    ? JSON.stringify({ result: say(rng, kind.returns, { ...values, r }) })
    : say(rng, kind.returns, { ...values, r });
  messages.push(
    { role: "tool", content: returned, tool_call_id: "call_1" },
    assistant(say(rng, kind.reply, { ...values, r })),
  );
  if (rng.chance(0.25)) messages.push(...nextRequest(draw, kind, name, spelling));
  return { family: "tool-result", messages, tools };
}

/** A second request for the same tool, after the first was answered. */
function nextRequest(draw: Draw, kind: ToolKind, name: string, spelling: Record<string, string>): Message[] {
  const { prompt, args } = request(draw, kind, spelling);
  return [user(prompt), { role: "assistant", content: null, tool_calls: [call(name, args)] }];
}

/** Tools are offered, but the question needs none. */
function noTool(draw: Draw): Conversation {
  const plain = draw.rng.pick([talk, topic, plainQuestion, oneWord])(draw);
  const conversation: Conversation = {
    ...plain,
    family: "tool-none",
    tools: others(draw.rng, ["define_word", "define"], draw.rng.int(1, 3)),
  };
  return conversation;
}

const actions = [
  "run",
  "start",
  "open",
  "check",
  "update",
  "create",
  "delete",
  "move",
  "count",
  "get",
  "find",
  "stop",
  "load",
  "save",
  "print",
  "test",
];

/** A new tool named with random words, so that the call must be read off the signature. */
function inventedTool(draw: Draw): Conversation {
  const { rng } = draw;
  const [noun, ...keys] = rng.sample(lexicon, rng.int(2, 4)) as [string, ...string[]];
  const action = rng.pick(actions);
  const name = rng.pick([
    `${action}_${noun}`,
    `${noun}_${action}`,
    `${action}${noun.charAt(0).toUpperCase()}${noun.slice(1)}`,
  ]);
  const properties: Record<string, Record<string, unknown>> = {};
  const args: Record<string, unknown> = {};
  const said: string[] = [];
  for (const key of keys) {
    const numeric = rng.chance(0.5);
    properties[key] = { type: numeric ? "integer" : "string" };
    args[key] = numeric ? rng.int(1, 5000) : rng.chance(0.3) ? personName(rng) : rng.pick(lexicon);
    said.push(`${key} ${args[key]}`);
  }
  const tool: Tool = {
    type: "function",
    function: {
      name,
      description: `${action.charAt(0).toUpperCase()}${action.slice(1)} the ${noun}`,
      parameters: { type: "object", properties, required: keys },
    },
  };
  const wording =
    "{{Please |Can you |Could you |}$action the $noun {with|using|where|for|:} $said{.|}|{Use|Call|Run|Execute} {the tool |}$name {with|for|on} $said{.|}|{I need you to|I want you to|You should|Go and} $action the $noun{:|, with} $said{.|}|$said{. |: |, }{$action|please $action} the $noun{.|}|{Time to|Let's} $action the $noun. {Use|Take|It is} $said{.|}}";
  const prompt = say(rng, wording, { action, noun, name, said: said.join(rng.pick([" and ", ", "])) });
  const tools = rng.shuffle([tool, ...others(rng, [name], rng.int(0, 2))]);
  const messages: Message[] = [
    user(prompt.charAt(0).toUpperCase() + prompt.slice(1)),
    { role: "assistant", content: null, tool_calls: [call(name, args)] },
  ];
  return { family: "tool-call", messages, tools, check: { kind: "tool", name, arguments: args } };
}
