// Prepares a chat request for the engine. The order of the steps decides which mistake is reported first: lengths, template,
// prompt, budget, sampling, log probabilities, constraint. All of it happens before the engine is asked, so every refusal is
// a plain 4xx.
import { type ChatInput, type ChatPrompt, chatPrompt } from "../../text/prompt.ts";
import { type LengthRules, outputBudget, promptRoom } from "../../text/prompt-length.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { grammarFor } from "../request/constraint.compile.ts";
import { lengthRules } from "../request/length-rules.ts";
import { checkLogprobAmount, checkLogprobCount, logprobAmount } from "../request/logprob-request.ts";
import { toSamplingParams } from "../request/sampling-params.ts";
import { chatInput, checkTemplateTrust } from "../request/template-fields.ts";
import { thinkingLimit } from "../request/thinking-limit.ts";
import { checkTokenIds } from "../request/token-ids.ts";
import type { PrepareContext } from "../run/answer.ts";
import { type ReplyFacts, replyFacts } from "../run/reply-facts.ts";
import { buildRun, type Run } from "../run/run-builder.ts";
import type { ServedModel } from "../run/served-model.ts";
import type { Service } from "../service.ts";
import { type ChatReplyOptions, chatReplyOptions } from "./chat.reply-options.ts";
import type { ChatBody } from "./chat.schema.ts";
import { checkTopLogprobs, type ValidatedChat } from "./chat.validate.ts";
import {
  constraintFor,
  markerTokenIds,
  parsersFor,
  type ReplyParsing,
  replyParsing,
  stateAfter,
} from "./reply-parsing.ts";

/** How often a reply keeps each of its log-probabilities until it is sent. */
export interface LogprobCopies {
  whole: number;
  /** 0: a stream sends them and forgets them. */
  streamed: number;
}

export const COLLECTED: LogprobCopies = { whole: 1, streamed: 0 };

export interface PreparedChat {
  run: Run;
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
  const prompt = await renderPrompt(service, body, parsing, length, client.id);
  // A tokenizer may have more tokens than the model has rows.
  checkTokenIds(prompt.tokenIds, vocabSize, "messages");
  const state = stateAfter(parsing, prompt, body.continue_final_message === true);
  const thinking = thinkingLimit(body.thinking_token_budget, parsing.reasoning, state, tokenizer);
  const chosen = toSamplingParams(body, {
    tokenizer,
    vocabSize,
    defaults: service.defaults,
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
  const run = buildRun(tokenizer, {
    body,
    promptTokenIds: prompt.tokenIds,
    n: readChoiceCount(body.n),
    sampling,
    model,
    compiled,
    // The sampled token is shown beside named ones.
    top: named === null ? logprobs.top : named + 1,
    tokensAsIds: body.return_tokens_as_token_ids ?? (model.recordsForTraining || service.config.returnTokensAsTokenIds),
    ...parsersFor(parsing, state),
    shownTokenIds: markerTokenIds(parsing, tokenizer),
    allowedArgs: service.config.allowedEngineArgs,
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

interface LogprobCounts {
  /** null: none. */
  top: number | null;
  prompt: number | null;
}

function requestedLogprobs(body: ChatBody, model: ServedModel): LogprobCounts {
  const wanted = body.logprobs ?? model.recordsForTraining;
  checkTopLogprobs(body, wanted);
  const top = wanted ? (body.top_logprobs ?? 0) : null;
  // An echoed prompt comes with its log probabilities, except in a stream, which cannot carry them. A stream that asks for 0
  // of them still bypasses the prefix cache.
  const echoed = body.echo === true && body.stream !== true;
  const prompt = body.prompt_logprobs ?? (echoed ? (body.top_logprobs ?? 0) : null);
  return { top, prompt };
}

function renderPrompt(
  service: Service,
  body: ChatBody,
  parsing: ReplyParsing,
  length: LengthRules,
  client: string,
): Promise<ChatPrompt> {
  promptRoom(length);
  checkTemplateTrust(body, service.config);
  return chatPrompt(service.text, templateInput(service, body, parsing, client), length);
}

/** What the chat template gets: without tools that the model must not see. `client` is the caller's id. */
export function templateInput({ config }: Service, body: ChatBody, parsing: ReplyParsing, client: string): ChatInput {
  const hidesTools = parsing.tools === null && config.excludeToolsWhenToolChoiceNone;
  const input = chatInput(body, client);
  return hidesTools ? { ...input, tools: null } : input;
}
