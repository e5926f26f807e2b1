// What OpenAI's newest clients send beyond the interface, where the operator allows it (--enable-openai-extensions): more efforts,
// allowed tools and custom tools. It becomes what every chat has.

import { type Static, Type } from "typebox";
import { invalidValue, ServiceError } from "../../errors/service-error.ts";
import type { TextGrammar } from "../../grammar/constraint.ts";
import { AnyObject, orNull } from "../schema/body.ts";
import { FunctionCall, messageOf, Tool, type WireMessage, type WireTool, type WireToolCall } from "./messages.ts";

// Custom tools: tools that a model gives a text instead of arguments. The model sees a function whose only argument is that text.

/** Name of a custom tool → what its text must match; null = anything. */
export type CustomTools = ReadonlyMap<string, TextGrammar | null>;

export interface CustomTool {
  name: string;
  description?: string | null | undefined;
  grammar: TextGrammar | null;
}

export const NO_CUSTOM_TOOLS: CustomTools = new Map();

const SYNTAXES = { lark: "that follows this Lark grammar", regex: "that matches this regular expression" };

export function customFunction({ name, description, grammar }: CustomTool): WireTool {
  const form = grammar === null ? "." : ` ${SYNTAXES[grammar.syntax]}:\n${grammar.definition}`;
  const input = { type: "string", description: `The whole input: a text${form}` };
  const parameters = { type: "object", properties: { input }, required: ["input"], additionalProperties: false };
  return { type: "function", function: { name, ...(description == null ? {} : { description }), parameters } };
}

export function customCall(id: string | null | undefined, name: string, input: string): WireToolCall {
  return { ...(id === undefined ? {} : { id }), type: "function", function: { name, arguments: { input } } };
}

/** `names`: those of all tools. A call is told by its name, so a custom tool needs one of its own. */
export function checkCustomTools(custom: CustomTools, names: readonly string[]): void {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const [name, grammar] of custom) {
    if (counts.get(name)! > 1) {
      throw invalidValue(`There is more than one tool called ${JSON.stringify(name)}.`, "tools");
    }
    if (grammar?.definition.includes("\0")) {
      throw new ServiceError("invalid_constraint", "The grammar of a tool must not contain U+0000.", {
        param: "tools",
      });
    }
  }
}

// How much a model should think, in the words of OpenAI's and Anthropic's APIs. Templates know low, medium and high.

export const ReasoningEffort = Type.Enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

const EFFORTS = { minimal: "low", low: "low", medium: "medium", high: "high", xhigh: "high", max: "high" } as const;

interface EffortFields {
  reasoning_effort?: "low" | "medium" | "high" | null;
  chat_template_kwargs?: Record<string, unknown> | null;
}

/** "none" turns thinking off, unless the template variables say otherwise. */
export function effortFields(
  effort: keyof typeof EFFORTS | "none" | null | undefined,
  kwargs: Record<string, unknown> | null | undefined,
): EffortFields {
  if (effort === "none") return { chat_template_kwargs: { enable_thinking: false, ...kwargs } };
  return {
    ...(effort === undefined ? {} : { reasoning_effort: effort === null ? null : EFFORTS[effort] }),
    ...(kwargs === undefined ? {} : { chat_template_kwargs: kwargs }),
  };
}

const Grammar = Type.Object({ definition: Type.String(), syntax: Type.Enum(["lark", "regex"]) });

const CustomToolSchema = Type.Object(
  {
    type: Type.Literal("custom"),
    custom: Type.Object({
      name: Type.String({ minLength: 1 }),
      description: orNull(Type.String()),
      format: orNull(Type.Object({ type: Type.Enum(["text", "grammar"]), grammar: orNull(Grammar) })),
    }),
  },
  { title: "CustomTool" },
);

const CustomCall = Type.Object(
  {
    id: orNull(Type.String()),
    type: Type.Literal("custom"),
    custom: Type.Object({ name: Type.String(), input: Type.String() }),
  },
  { title: "CustomToolCall" },
);

const NamedFunction = Type.Object(
  { type: Type.Literal("function"), function: Type.Object({ name: Type.String() }) },
  { title: "NamedFunction" },
);
const NamedCustom = Type.Object(
  { type: Type.Literal("custom"), custom: Type.Object({ name: Type.String() }) },
  { title: "NamedCustomTool" },
);
const AllowedTools = Type.Object(
  {
    type: Type.Literal("allowed_tools"),
    allowed_tools: Type.Object({ mode: Type.Enum(["auto", "required"]), tools: Type.Array(AnyObject) }),
  },
  { title: "AllowedTools" },
);

type ExtendedMessage = Omit<WireMessage, "tool_calls"> & {
  tool_calls?: (WireToolCall | Static<typeof CustomCall>)[] | null;
};

export const ExtendedMessage = messageOf<ExtendedMessage>(Type.Union([FunctionCall, CustomCall]));

/** Fields of a prompt. */
export const extendedFields = {
  tools: orNull(Type.Array(Type.Union([Tool, CustomToolSchema]))),
  reasoning_effort: orNull(ReasoningEffort),
};

export const ExtendedToolChoice = Type.Optional(
  Type.Union([Type.Enum(["none", "auto", "required"]), NamedFunction, NamedCustom, AllowedTools, Type.Null()]),
);

type AnyTool = WireTool | Static<typeof CustomToolSchema>;

interface ExtendedPrompt {
  messages: readonly ExtendedMessage[];
  tools?: AnyTool[] | null;
  tool_choice?: Static<typeof ExtendedToolChoice>;
  reasoning_effort?: Static<typeof ReasoningEffort> | null;
  chat_template_kwargs?: Record<string, unknown> | null;
}

type PlainPrompt = {
  messages: WireMessage[];
  tools?: WireTool[] | null;
  tool_choice?: "none" | "auto" | "required" | { type: "function"; function: { name: string } } | null;
} & ReturnType<typeof effortFields>;

/** The same request without extensions, and which of its functions are custom tools. */
export function plainRequest<B extends ExtendedPrompt>(
  body: B,
): { plain: Omit<B, keyof ExtendedPrompt> & PlainPrompt; custom: CustomTools } {
  const {
    messages,
    tools,
    tool_choice: choice,
    reasoning_effort: effort,
    chat_template_kwargs: kwargs,
    ...rest
  } = body;
  const custom = new Map<string, TextGrammar | null>();
  const asFunction = (tool: AnyTool): WireTool => (tool.type === "custom" ? customTool(tool, custom) : tool);
  const functions = tools == null ? tools : tools.map(asFunction);
  checkCustomTools(custom, functions?.map((tool) => tool.function.name) ?? []);
  const plain = {
    ...rest,
    messages: messages.map(plainMessage),
    ...effortFields(effort, kwargs),
    ...(functions === undefined ? {} : { tools: functions }),
    ...(choice === undefined ? {} : plainChoice(choice, functions ?? [])),
  };
  return { plain, custom };
}

function customTool(
  { custom: { name, description, format } }: Static<typeof CustomToolSchema>,
  known: Map<string, TextGrammar | null>,
): WireTool {
  if (format?.type === "grammar" && format.grammar == null) {
    throw invalidValue(`The format of the custom tool ${JSON.stringify(name)} needs a grammar.`, "tools");
  }
  const grammar = format?.type === "grammar" ? format.grammar! : null;
  known.set(name, grammar);
  return customFunction({ name, description, grammar });
}

function plainMessage({ tool_calls: calls, ...message }: ExtendedMessage): WireMessage {
  if (calls == null) return calls === undefined ? message : { ...message, tool_calls: calls };
  const plain = calls.map((call) =>
    "custom" in call ? customCall(call.id, call.custom.name, call.custom.input) : call,
  );
  return { ...message, tool_calls: plain };
}

function plainChoice(
  choice: Static<typeof ExtendedToolChoice> | null,
  tools: WireTool[],
): Pick<PlainPrompt, "tools" | "tool_choice"> {
  if (choice === null || typeof choice === "string" || choice.type === "function") return { tool_choice: choice };
  if (choice.type === "custom") return { tool_choice: { type: "function", function: { name: choice.custom.name } } };
  const { mode, tools: allowed } = choice.allowed_tools;
  return allowedTools(
    mode,
    allowed.map((tool) => nameOf(tool.function ?? tool.custom)),
    tools,
  );
}

function nameOf(tool: unknown): unknown {
  return (tool as { name?: unknown } | undefined)?.name;
}

/** The model sees and may call these tools only. */
export function allowedTools(
  mode: "auto" | "required",
  allowed: readonly unknown[],
  tools: readonly WireTool[],
): { tools: WireTool[]; tool_choice: "auto" | "required" } {
  const names = new Set(allowed);
  const chosen = tools.filter((tool) => names.has(tool.function.name));
  if (chosen.length < names.size) throw invalidValue("allowed_tools names a tool that is not in tools.", "tool_choice");
  return { tools: chosen, tool_choice: mode };
}
