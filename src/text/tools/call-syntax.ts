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

import type { ToolSignature } from "../../grammar/constraint.ts";
import { GlmCallReader } from "./glm-call-reader.ts";
import type { CallSyntax } from "./marked-parser.ts";
import { MistralCallReader } from "./mistral-call-reader.ts";
import { NamedCallReader, type ReadHeader } from "./named-call-reader.ts";
import { ObjectCallReader } from "./object-call-reader.ts";
import { PythonCallReader } from "./python-call-reader.ts";

const LIST_CLOSES = [",", "]"];

export const HERMES: CallSyntax = {
  opens: ["<tool_call>"],
  closes: ["</tool_call>"],
  reader: (index) => new ObjectCallReader(index),
};

export const PYTHONIC: CallSyntax = {
  opens: [],
  closes: LIST_CLOSES,
  bareList: true,
  reader: (index, mark) => new PythonCallReader(index, mark !== ","),
};

export const MISTRAL: CallSyntax = {
  opens: ["[TOOL_CALLS]"],
  closes: LIST_CLOSES,
  reader: (index, mark) => (mark === "," ? new ObjectCallReader(index) : new MistralCallReader(index)),
};

export const GRANITE: CallSyntax = {
  opens: ["<|tool_call|>", "<tool_call>"],
  closes: LIST_CLOSES,
  bareList: true,
  reader: (index, mark) => new ObjectCallReader(index, { opensList: mark !== ",", marked: mark !== "" }),
};

export const PHI4_MINI: CallSyntax = {
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
export const DEEPSEEK: CallSyntax = {
  opens: ["<｜tool▁calls▁begin｜>", DEEPSEEK_CALL],
  closes: ["```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
  reader: (index) => new NamedCallReader(index, deepseekHeader),
};

const kimiHeader: ReadHeader = (header) => {
  const form = /^\s*(?:<\|tool_call_begin\|>\s*)?((?:functions\.)?([\w.-]+):\d+)\s*<\|tool_call_argument_begin\|>\s*$/;
  const found = form.exec(header);
  return found && { name: found[2]!, id: found[1] };
};

export const KIMI_K2: CallSyntax = {
  opens: ["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_call_begin|>"],
  closes: ["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
  reader: (index) => new NamedCallReader(index, kimiHeader),
};

export function glm45(tools: readonly ToolSignature[], exact: boolean): CallSyntax {
  return { opens: ["<tool_call>"], closes: [], reader: (index) => new GlmCallReader(index, tools, exact) };
}
