// What a chat reply shows, decided once per request: token ids, role, echo, reasoning and tool calls.
import type { FinishReason } from "../../engine/contract.ts";
import type { ChatPrompt } from "../../text/prompt.ts";
import type { ServedModel } from "../run/served-model.ts";
import type { Service } from "../service.ts";
import type { ChatBody } from "./chat.schema.ts";
import type { ReplyParsing } from "./reply-parsing.ts";

export interface ChatReplyOptions {
  promptTokenIds: readonly number[];
  returnTokenIds: boolean;
  /** Whether choices carry logprobs. */
  logprobs: boolean;
  /** "assistant", or the last message's role when no generation prompt was added. */
  role: string;
  /** Text put before every choice; "" for none. */
  echo: string;
  /** Reasoning or tool calls are parsed, so some tokens have no text of their own. */
  parses: boolean;
  includeReasoning: boolean;
  /** Also send reasoning as reasoning_content. */
  reasoningAlias: boolean;
  /** Reasoning is hidden, so token ids and logprobs, which would show it, are hidden too. */
  hideDetails: boolean;
  /** false: only the first parsed tool call is shown. */
  parallelToolCalls: boolean;
  /** The request named the function to call. Such a reply ends with "stop" and has empty content. */
  namedTool: boolean;
  /** Step of a trained policy, shown in every choice; null: not shown. */
  policyVersion: number | null;
}

/** The engine's reason → the wire's: parsed calls end a turn as "tool_calls". */
export function wireFinishReason(reason: FinishReason, hasToolCalls: boolean, namedTool: boolean): string {
  return reason === "stop" && hasToolCalls && !namedTool ? "tool_calls" : reason;
}

export function chatReplyOptions(
  { config }: Service,
  body: ChatBody,
  model: ServedModel,
  parsing: ReplyParsing,
  prompt: ChatPrompt,
): ChatReplyOptions {
  const includeReasoning = body.include_reasoning ?? true;
  return {
    promptTokenIds: prompt.tokenIds,
    returnTokenIds: body.return_token_ids ?? model.recordsForTraining,
    logprobs: body.logprobs ?? model.recordsForTraining,
    role: prompt.replyRole,
    echo: body.echo === true ? (prompt.echoText ?? "") : "",
    parses: parsing.reasoning !== null || parsing.tools !== null,
    includeReasoning,
    reasoningAlias: config.reasoningContentAlias,
    hideDetails: parsing.reasoning !== null && !includeReasoning && !model.recordsForTraining,
    parallelToolCalls: body.parallel_tool_calls ?? true,
    namedTool: parsing.namedTool,
    policyVersion: model.policyVersion,
  };
}
