// The tool-call formats: the names that operators use for them, and their parsers.

import { OperatorError } from "../../errors/operator-error.ts";
import type { ToolCallFormat } from "../../grammar/constraint.ts";
import type { ReplyParser } from "../reply-parser.ts";
import { HermesParser } from "./hermes-parser.ts";
import { LlamaJsonParser } from "./llama-json-parser.ts";
import { PythonicParser } from "./pythonic-parser.ts";

const formats: Record<string, ToolCallFormat> = {
  hermes: "hermes",
  qwen: "hermes",
  granite4: "hermes",
  llama3_json: "llama3_json",
  llama4_json: "llama3_json",
  pythonic: "pythonic",
};

/** The format that an operator names. */
export function toolCallFormat(name: string): ToolCallFormat {
  if (!Object.hasOwn(formats, name)) {
    const known = Object.keys(formats).join(", ");
    throw new OperatorError(`--tool-call-parser: there is no parser "${name}"; known: ${known}`);
  }
  return formats[name]!;
}

const PARSERS: Record<ToolCallFormat, new () => ReplyParser> = {
  hermes: HermesParser,
  llama3_json: LlamaJsonParser,
  pythonic: PythonicParser,
};

export function toolCallParser(format: ToolCallFormat): ReplyParser {
  return new PARSERS[format]();
}

/** Texts the parser must see even where the tokenizer has special tokens for them. */
export function toolMarkers(format: ToolCallFormat): string[] {
  return format === "hermes" ? ["<tool_call>", "</tool_call>"] : [];
}
