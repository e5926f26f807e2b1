// Prepares a chat request for the engine. The order of the steps decides which mistake is reported first: lengths, template,
// prompt, budget, sampling, log probabilities, constraint. All of it happens before the engine is asked, so every refusal is
// a plain 4xx.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { FinishReason } from "../../../engine/contract.ts";
import { type ChatInput, type ChatPrompt, chatPrompt } from "../../../text/prompt.ts";
import { outputBudget, promptRoom } from "../../../text/prompt-length.ts";
import { answer, type PrepareContext, type Reply } from "../../generation/answer.ts";
import { grammarFor } from "../../generation/constraint.ts";
import { buildRun, type GenerationPlan } from "../../generation/generation.ts";
import {
  checkLogprobAmount,
  checkLogprobCount,
  checkTokenIds,
  lengthRules,
  logprobAmount,
  readChoiceCount,
  thinkingLimit,
} from "../../generation/limits.ts";
import { chatInput, checkTemplateTrust } from "../../generation/messages.ts";
import { type ReplyFacts, replyFacts } from "../../generation/reply.ts";
import { toSamplingParams } from "../../generation/sampling.ts";
import { principalOf } from "../../http/auth.ts";
import type { ModelLease } from "../../models/model-registry.ts";
import type { Service } from "../../service.ts";
import type { ChatBody } from "./chat.schema.ts";
import { type ChatRules, checkTopLogprobs, type ValidatedChat } from "./chat.validate.ts";
import {
  constraintFor,
  markerTokenIds,
  parsersFor,
  type ReplyParsing,
  replyParsing,
  stateAfter,
} from "./reply-parsing.ts";

// What a chat reply shows, decided once per request: token ids, role, echo, reasoning and tool calls.

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

function chatReplyOptions(
  { config }: Service,
  body: ChatBody,
  model: ModelLease,
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

/** How often a reply keeps each of its log-probabilities until it is sent. */
interface LogprobCopies {
  whole: number;
  /** 0: a stream sends them and forgets them. */
  streamed: number;
}

export const COLLECTED: LogprobCopies = { whole: 1, streamed: 0 };

export interface PreparedChat {
  run: GenerationPlan;
  facts: ReplyFacts;
  options: ChatReplyOptions;
  /** How many log-probabilities are held at once. */
  logprobs: number;
}

export async function prepareChat(
  service: Service,
  validated: ValidatedChat,
  { model, requestId, client, stopped }: PrepareContext,
  copies: LogprobCopies = COLLECTED,
): Promise<PreparedChat> {
  const { body } = validated;
  const { vocabSize, maxModelLen } = service.engine.info;
  const { tokenizer } = service.text;
  const length = lengthRules(body, maxModelLen);
  const logprobs = requestedLogprobs(body, model);
  const parsing = replyParsing(service, validated);
  promptRoom(length);
  checkTemplateTrust(body, service.config);
  const prompt = await chatPrompt(service.text, templateInput(service, body, parsing, client.id), length);
  // A tokenizer may have more tokens than the model has rows.
  checkTokenIds(prompt.tokenIds, vocabSize, "messages");
  const state = stateAfter(parsing, prompt, body.continue_final_message === true);
  const thinking = thinkingLimit(body.thinking_token_budget, parsing.reasoning, state, tokenizer);
  const chosen = toSamplingParams(body, service, {
    maxTokens: outputBudget({
      contextLength: maxModelLen,
      promptTokens: prompt.tokenIds.length,
      maxTokens: length.maxTokens,
      defaultMaxTokens: service.defaults.maxNewTokens,
    }),
    logprobs: logprobs.top,
    promptLogprobs: logprobs.prompt,
  });
  const sampling = { ...chosen, thinking };
  const named = sampling.logprobTokenIds?.length ?? null;
  if (named === null) checkLogprobCount(logprobs.top, service.config.maxLogprobs, vocabSize, "logprobs");
  checkLogprobCount(logprobs.prompt, service.config.maxLogprobs, vocabSize, "prompt_logprobs");
  const tokens = { maxTokens: sampling.maxTokens, promptTokens: prompt.tokenIds.length };
  const counts = { choices: readChoiceCount(body.n), ...logprobs, top: named ?? logprobs.top };
  const kept = logprobAmount({ ...tokens, ...counts }, vocabSize) * copies[body.stream === true ? "streamed" : "whole"];
  checkLogprobAmount(kept, "top_logprobs");
  const step = logprobAmount({ ...counts, maxTokens: 1, promptTokens: 0 }, vocabSize);
  const compiled = await grammarFor(service, constraintFor(parsing, state, body.include_reasoning ?? true), {
    client,
    stopped,
  });
  const run = buildRun(service, {
    body,
    promptTokenIds: prompt.tokenIds,
    n: readChoiceCount(body.n),
    sampling,
    model,
    compiled,
    // The sampled token is shown beside named ones.
    top: named === null ? logprobs.top : named + 1,
    tokensAsIds: body.return_tokens_as_token_ids ?? (model.recordsForTraining || service.config.returnTokensAsTokenIds),
    parsers: parsersFor(parsing, state),
    shownTokenIds: markerTokenIds(parsing, tokenizer),
    ...(body.mm_processor_kwargs ? { extra: { mmProcessorKwargs: body.mm_processor_kwargs } } : {}),
  });
  return {
    run,
    facts: replyFacts(service, body, model, {
      id: `chatcmpl-${requestId}`,
      promptTokens: prompt.tokenIds.length,
      reasoningParsed: service.reasoning !== null,
    }),
    options: chatReplyOptions(service, body, model, parsing, prompt),
    logprobs: Math.max(kept, step),
  };
}

/** null: none. */
function requestedLogprobs(body: ChatBody, model: ModelLease) {
  const wanted = body.logprobs ?? model.recordsForTraining;
  checkTopLogprobs(body, wanted);
  const top = wanted ? (body.top_logprobs ?? 0) : null;
  // An echoed prompt comes with its log probabilities, except in a stream, which cannot carry them. A stream that asks for 0
  // of them still bypasses the prefix cache.
  const echoed = body.echo === true && body.stream !== true;
  const prompt = body.prompt_logprobs ?? (echoed ? (body.top_logprobs ?? 0) : null);
  return { top, prompt };
}

/** What the chat template gets: without tools that the model must not see. `client` is the caller's id. */
export function templateInput({ config }: Service, body: ChatBody, parsing: ReplyParsing, client: string): ChatInput {
  const hidesTools = parsing.tools === null && config.excludeToolsWhenToolChoiceNone;
  const input = chatInput(body, client);
  return hidesTools ? { ...input, tools: null } : input;
}

// Answers a chat in any dialect. A dialect translates a request into a chat, and the outputs of the chat into its own replies.
// Whatever is between, all dialects share.

export interface Dialect {
  /** Default: as in a chat. */
  copies?: LogprobCopies;
  /** `streams`: as events. */
  reply(prepared: PreparedChat, streams: boolean): Reply;
}

export function chatRules({ config, engine, toolFormat, toolCommand }: Service): ChatRules {
  const { policy, maxModelLen } = engine.info;
  return {
    toolCommand: toolFormat === null ? toolCommand : null,
    policy,
    extensions: config.enableOpenaiExtensions,
    contextLength: maxModelLen,
  };
}

/** `read`: reads the request and says in which dialect it is answered. It throws what is wrong with the request. */
export function answerInDialect(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  read: () => Promise<{ chat: ValidatedChat; dialect: Dialect }>,
): Promise<FastifyReply> {
  return answer(service, request, reply, async () => {
    const { chat, dialect } = await read();
    const { body } = chat;
    if (body.tool_choice === undefined && (body.tools ?? []).length > 0) service.logUnparsedTools(principalOf(request));
    return {
      ...{ body, ignored: chat.ignored },
      choices: readChoiceCount(body.n),
      async prepare(context) {
        const prepared = await prepareChat(service, chat, context, dialect.copies);
        const { run, logprobs } = prepared;
        return { runs: [run], logprobs, reply: dialect.reply(prepared, body.stream === true) };
      },
    };
  });
}
