// Which parsers the replies of a model go through, by the options and its chat template.

import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import type { ToolCallFormat } from "../grammar/constraint.ts";
import { type ReasoningStyle, reasoningStyle } from "../text/reasoning/reasoning-style.ts";
import { toolCallFormat } from "../text/tools/tool-format.ts";

type ParserConfig = Pick<Config, "enableAutoToolChoice" | "toolCallParser" | "reasoningParser">;

/** null: not parsed. */
export interface ReplyParsers {
  reasoning: ReasoningStyle | null;
  toolFormat: ToolCallFormat | null;
}

export function replyParsers(config: ParserConfig, chatTemplate: string | null): ReplyParsers {
  const { enableAutoToolChoice, toolCallParser } = config;
  if (toolCallParser !== null && !enableAutoToolChoice) {
    throw new OperatorError("--tool-call-parser has no effect without --enable-auto-tool-choice: give both");
  }
  return {
    reasoning: reasoningStyle(config.reasoningParser, chatTemplate),
    toolFormat: enableAutoToolChoice ? toolCallFormat(toolCallParser ?? "auto", chatTemplate) : null,
  };
}
