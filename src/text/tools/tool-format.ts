// The tool-call formats: the names that operators use for them, how a chat template shows them, and their parsers.

import { OperatorError } from "../../errors/faults.ts";
import type { ToolCallFormat, ToolSignature } from "../../grammar/constraint.ts";
import type { ReplyParser } from "../reply-parser.ts";
import { GlmCallReader } from "./glm-call-reader.ts";
import { LlamaJsonParser } from "./llama-json-parser.ts";
import { type CallSyntax, MarkedParser } from "./marked-parser.ts";
import { MistralCallReader, NamedCallReader, type ReadHeader } from "./named-call-reader.ts";
import { ObjectCallReader } from "./object-call-reader.ts";
import { PythonCallReader } from "./python-call-reader.ts";

// The marks of each format, and how its calls are read.
//
// hermes          <tool_call>{"name": …, "arguments": {…}}</tool_call>, any number of them
// pythonic        [name(key=value, …), …] at the beginning of the reply
// mistral         [TOOL_CALLS][{"name": …, "arguments": {…}}, …], or since version 11 [TOOL_CALLS]NAME{…}, also with
//                 [CALL_ID]ID and [ARGS] before the arguments
// granite         <|tool_call|>[{"name": …, "arguments": {…}}, …], with <tool_call> or no mark at all in some versions
// phi4_mini_json  functools[{"name": …, "arguments": {…}}, …], or <|tool_call|>[…]<|/tool_call|>
// deepseek_v3     calls begin, then for each call: begin, function, separator, NAME, a code block of JSON, end; calls end.
//                 deepseek_v31 is the same without "function" and the code block
// kimi_k2         section begin, then for each call: begin, functions.NAME:NUMBER, argument begin, {…}, end; section end
// glm45           <tool_call>NAME <arg_key>…</arg_key><arg_value>…</arg_value> … </tool_call>

const LIST_CLOSES = [",", "]"];

const HERMES: CallSyntax = {
  opens: ["<tool_call>"],
  closes: ["</tool_call>"],
  reader: (index) => new ObjectCallReader(index),
};

const PYTHONIC: CallSyntax = {
  opens: [],
  closes: LIST_CLOSES,
  bareList: true,
  reader: (index, mark) => new PythonCallReader(index, mark !== ","),
};

const MISTRAL: CallSyntax = {
  opens: ["[TOOL_CALLS]"],
  closes: LIST_CLOSES,
  reader: (index, mark) => (mark === "," ? new ObjectCallReader(index) : new MistralCallReader(index)),
};

const GRANITE: CallSyntax = {
  opens: ["<|tool_call|>", "<tool_call>"],
  closes: LIST_CLOSES,
  bareList: true,
  reader: (index, mark) => new ObjectCallReader(index, { opensList: mark !== ",", marked: mark !== "" }),
};

const PHI4_MINI: CallSyntax = {
  opens: ["functools[", "<|tool_call|>"],
  closes: [...LIST_CLOSES, "<|/tool_call|>"],
  reader: (index, mark) => new ObjectCallReader(index, { opensList: mark === "<|tool_call|>" }),
};

const DEEPSEEK_CALL = "<｜tool▁call▁begin｜>";
const DEEPSEEK_HEADER =
  /^\s*(?:<｜tool▁call▁begin｜>\s*)?(?:function\s*<｜tool▁sep｜>\s*([\w.-]+)\s*```json|([\w.-]+)\s*<｜tool▁sep｜>)\s*$/;

const deepseekHeader: ReadHeader = (header) => {
  const found = DEEPSEEK_HEADER.exec(header);
  return found && { name: (found[1] ?? found[2])! };
};

/** Both versions are read, whichever the model writes. */
const DEEPSEEK: CallSyntax = {
  opens: ["<｜tool▁calls▁begin｜>", DEEPSEEK_CALL],
  closes: ["```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
  reader: (index) => new NamedCallReader(index, deepseekHeader),
};

const kimiHeader: ReadHeader = (header) => {
  const form = /^\s*(?:<\|tool_call_begin\|>\s*)?((?:functions\.)?([\w.-]+):\d+)\s*<\|tool_call_argument_begin\|>\s*$/;
  const found = form.exec(header);
  return found && { name: found[2]!, id: found[1] };
};

const KIMI_K2: CallSyntax = {
  opens: ["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"],
  closes: ["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
  reader: (index) => new NamedCallReader(index, kimiHeader),
};

function glm45(tools: readonly ToolSignature[], exact: boolean): CallSyntax {
  return { opens: ["<tool_call>"], closes: [], reader: (index) => new GlmCallReader(index, tools, exact) };
}

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
