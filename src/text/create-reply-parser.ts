// The parser for one choice of one request: reasoning first, then tool calls, then plain text, each only if it applies.

import type { ToolCallFormat, ToolSignature } from "../grammar/constraint.ts";
import { ReasoningParser, type ReasoningState, type ReasoningStyle } from "./reasoning.ts";
import { PlainReplyParser, type ReplyDelta, type ReplyParser } from "./reply-parser.ts";
import { CustomCalls } from "./tools/custom-calls.ts";
import { TOOL_MARKERS, toolCallParser } from "./tools/tool-format.ts";

// Special tokens that may be part of a reply's text: reply parsers look for them, and grammars may contain them.
export const REPLY_MARKERS = ["<think>", "</think>", ...TOOL_MARKERS, "<|python_tag|>"];

export interface ReplyParserOptions {
  /** null = the server parses no reasoning. */
  reasoning: { style: ReasoningStyle; state: ReasoningState } | null;
  /** null = tool calls are not parsed (tool_choice none). */
  tools: ToolCallFormat | null;
  /** The tools of the request. In some formats their schemas tell how arguments are written. */
  signatures?: readonly ToolSignature[];
  /** Calls are spelt as grammar/tool-call-grammar.ts writes them. */
  exact?: boolean;
  /** The reply was forced to be tool calls. Any other text is a call that was cut short, not content. */
  forced?: boolean;
}

export function createReplyParser(options: ReplyParserOptions): ReplyParser {
  const { reasoning, tools, signatures = [], forced = false, exact = forced } = options;
  const parsed = tools === null ? new PlainReplyParser() : toolCallParser(tools, { tools: signatures, exact });
  const custom = new Set(signatures.filter(({ input }) => input !== undefined).map(({ name }) => name));
  const calls = custom.size === 0 ? parsed : new CustomCalls(parsed, custom);
  const answer = forced ? new CallsOnly(calls) : calls;
  return reasoning ? new ReasoningParser(reasoning.style, reasoning.state, answer) : answer;
}

class CallsOnly implements ReplyParser {
  readonly #parser: ReplyParser;

  constructor(parser: ReplyParser) {
    this.#parser = parser;
  }

  push(text: string): ReplyDelta[] {
    return this.#parser.push(text).filter(({ kind }) => kind === "tool_call");
  }

  finish(): ReplyDelta[] {
    return this.#parser.finish().filter(({ kind }) => kind === "tool_call");
  }
}

/** Follows a choice's text to tell which of its tokens are reasoning; null where that is not parsed. */
export function createThoughtMeter({ reasoning }: Pick<ReplyParserOptions, "reasoning">): ReasoningParser | null {
  return reasoning ? new ReasoningParser(reasoning.style, reasoning.state, new PlainReplyParser()) : null;
}
