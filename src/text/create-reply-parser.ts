// The parser for one choice of one request: reasoning first, then tool calls, then plain text, each only if it applies.

import type { ToolCallFormat } from "../grammar/constraint.ts";
import { ReasoningParser } from "./reasoning/reasoning-parser.ts";
import type { ReasoningState, ReasoningStyle } from "./reasoning/reasoning-style.ts";
import { PlainReplyParser, type ReplyParser } from "./reply-parser.ts";
import { toolCallParser } from "./tools/tool-format.ts";

export interface ReplyParserOptions {
  /** null = the server parses no reasoning. */
  reasoning: { style: ReasoningStyle; state: ReasoningState } | null;
  /** null = tool calls are not parsed (tool_choice none). */
  tools: ToolCallFormat | null;
}

export function createReplyParser({ reasoning, tools }: ReplyParserOptions): ReplyParser {
  const answer = tools ? toolCallParser(tools) : new PlainReplyParser();
  return reasoning ? new ReasoningParser(reasoning.style, reasoning.state, answer) : answer;
}

/** Follows a choice's text to tell which of its tokens are reasoning; null where that is not parsed. */
export function createThoughtMeter({ reasoning }: Pick<ReplyParserOptions, "reasoning">): ReasoningParser | null {
  return reasoning ? new ReasoningParser(reasoning.style, reasoning.state, new PlainReplyParser()) : null;
}
