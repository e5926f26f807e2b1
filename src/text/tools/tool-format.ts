// The tool-call formats: the names that operators use for them, how a chat template shows them, and their parsers.

import { OperatorError } from "../../errors/faults.ts";
import type { ToolCallFormat, ToolSignature } from "../../grammar/constraint.ts";
import type { ReplyParser } from "../reply-parser.ts";
import { DEEPSEEK, GRANITE, glm45, HERMES, KIMI_K2, MISTRAL, PHI4_MINI, PYTHONIC } from "./call-syntax.ts";
import { LlamaJsonParser } from "./llama-json-parser.ts";
import { type CallSyntax, MarkedParser } from "./marked-parser.ts";

const formats: Record<string, ToolCallFormat> = {
  hermes: "hermes",
  qwen: "hermes",
  granite4: "hermes",
  llama3_json: "llama3_json",
  llama4_json: "llama3_json",
  pythonic: "pythonic",
  llama4_pythonic: "pythonic",
  mistral: "mistral",
  granite: "granite",
  phi4_mini_json: "phi4_mini_json",
  deepseek_v3: "deepseek_v3",
  deepseek_v31: "deepseek_v31",
  kimi_k2: "kimi_k2",
  glm45: "glm45",
};

/** Parsers of other servers that are missing here, and why. */
const MISSING = new Map([
  [
    "openai",
    "gpt-oss writes reasoning, answers and calls as harmony channels, which this server cannot tell apart, nor run its weights",
  ],
]);

/** What `--tool-call-parser` takes. */
export const TOOL_CALL_PARSERS = ["auto", ...Object.keys(formats)];
const TAKEN = Object.keys(formats).join(", ");

/** The format that an operator names; "auto" = the one that the template shows. */
export function toolCallFormat(name: string, chatTemplate: string | null = null): ToolCallFormat {
  if (name === "auto") {
    const shown = shownFormat(chatTemplate);
    if (shown !== null) return shown;
    throw new OperatorError(
      `the chat template does not show how this model writes tool calls: choose with --tool-call-parser; known: ${TAKEN}`,
    );
  }
  if (!Object.hasOwn(formats, name)) {
    const why = MISSING.has(name) ? `: ${MISSING.get(name)}` : "";
    throw new OperatorError(`--tool-call-parser: there is no parser "${name}"${why}; known: auto, ${TAKEN}`);
  }
  return formats[name]!;
}

/** What a template contains, from the most telling to the least → the format. null: one that cannot be read here. */
const SHOWN: readonly [RegExp, ToolCallFormat | null][] = [
  [/<function=|<\|channel\|>/, null], // Qwen3-Coder, gpt-oss
  [/<arg_key>/, "glm45"],
  [/<\|tool_calls_section_begin\|>/, "kimi_k2"],
  [/<｜tool▁calls▁begin｜>[\s\S]*```json/, "deepseek_v3"],
  [/<｜tool▁calls▁begin｜>/, "deepseek_v31"],
  [/\[TOOL_CALLS\]/, "mistral"],
  [/functools\[|<\|\/tool\|>/, "phi4_mini_json"],
  [/<\|tool_call\|>/, "granite"],
  [/<tool_call>/, "hermes"],
  [/\[func_name1\(/, "pythonic"],
  [/\{"name": function name, "parameters"|<\|python_tag\|>/, "llama3_json"],
];

/** The format in which a template writes the calls of earlier turns; null = none that is known. */
export function shownFormat(chatTemplate: string | null): ToolCallFormat | null {
  return SHOWN.find(([sign]) => sign.test(chatTemplate ?? ""))?.[1] ?? null;
}

export interface ParserOptions {
  /** The tools of the request. */
  tools: readonly ToolSignature[];
  /** Calls are spelt as grammar/tool-call-grammar.ts writes them. */
  exact: boolean;
}

export function toolCallParser(format: ToolCallFormat, options: ParserOptions): ReplyParser {
  return format === "llama3_json" ? new LlamaJsonParser() : new MarkedParser(syntaxOf(format, options));
}

function syntaxOf(format: Exclude<ToolCallFormat, "llama3_json">, { tools, exact }: ParserOptions): CallSyntax {
  switch (format) {
    case "hermes":
      return HERMES;
    case "pythonic":
      return PYTHONIC;
    case "mistral":
      return MISTRAL;
    case "granite":
      return { ...GRANITE, bareList: !exact };
    case "phi4_mini_json":
      return PHI4_MINI;
    case "deepseek_v3":
    case "deepseek_v31":
      return DEEPSEEK;
    case "kimi_k2":
      return KIMI_K2;
    case "glm45":
      return glm45(tools, exact);
    default:
      return format satisfies never;
  }
}

const MARKERS: Partial<Record<ToolCallFormat, string[]>> = {
  hermes: ["<tool_call>", "</tool_call>"],
  mistral: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
  granite: ["<|tool_call|>", "<tool_call>"],
  phi4_mini_json: ["<|tool_call|>", "<|/tool_call|>"],
  deepseek_v3: [...DEEPSEEK.opens, ...DEEPSEEK.closes, "<｜tool▁sep｜>"],
  deepseek_v31: [...DEEPSEEK.opens, ...DEEPSEEK.closes, "<｜tool▁sep｜>"],
  kimi_k2: [...KIMI_K2.opens, ...KIMI_K2.closes, "<|tool_call_argument_begin|>"],
  glm45: ["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
};

/** Texts the parser must see even where the tokenizer has special tokens for them. */
export function toolMarkers(format: ToolCallFormat): string[] {
  return MARKERS[format] ?? [];
}

/** Those of all formats. */
export const TOOL_MARKERS = [...new Set(Object.values(MARKERS).flat())];
