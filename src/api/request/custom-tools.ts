// Custom tools: tools that a model gives a text instead of arguments. The model sees a function whose only argument is that text.
import { ServiceError } from "../../errors/service-error.ts";
import type { TextGrammar } from "../../grammar/constraint.ts";
import type { WireTool, WireToolCall } from "./message.schema.ts";

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
      throw new ServiceError("invalid_value", `There is more than one tool called ${JSON.stringify(name)}.`, {
        param: "tools",
      });
    }
    if (grammar?.definition.includes("\0")) {
      throw new ServiceError("invalid_constraint", "The grammar of a tool must not contain U+0000.", {
        param: "tools",
      });
    }
  }
}
