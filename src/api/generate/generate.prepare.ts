// Prepares a generate request for the engine. As in vLLM, sampling fields that are left out are neutral, whatever the model
// recommends. Only the ids that end an output are the model's, and max_new_tokens applies where max_tokens is left out.
import { fitTokens, outputBudget } from "../../text/prompt-length.ts";
import { PlainReplyParser } from "../../text/reply-parser.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { grammarFor } from "../request/constraint.compile.ts";
import { readOutputShape } from "../request/constraint.wire.ts";
import { NEUTRAL_DEFAULTS } from "../request/generation-defaults.ts";
import { lengthRules } from "../request/length-rules.ts";
import { checkLogprobAmount, checkLogprobCount, logprobAmount } from "../request/logprob-request.ts";
import { toSamplingParams } from "../request/sampling-params.ts";
import { thinkingLimitAfter } from "../request/thinking-limit.ts";
import { checkTokenIds } from "../request/token-ids.ts";
import type { PrepareContext } from "../run/answer.ts";
import { replyFacts } from "../run/reply-facts.ts";
import { buildRun, type Run, stopList } from "../run/run-builder.ts";
import type { Service } from "../service.ts";
import { TokenChoices } from "./generate.reply.ts";
import type { TokenFields } from "./generate.validate.ts";

export interface PreparedTokens {
  run: Run;
  choices: TokenChoices;
  /** How many log-probabilities are held at once. */
  logprobs: number;
}

export async function prepareTokens(
  service: Service,
  body: TokenFields,
  { model, requestId, client, stopped }: PrepareContext,
): Promise<PreparedTokens> {
  const { config, defaults, engine } = service;
  const { maxModelLen, vocabSize } = engine.info;
  const { tokenizer } = service.text;
  const n = readChoiceCount(body.n);
  const { maxTokens } = lengthRules(body, maxModelLen);
  // A budget that is larger than the rest of the context is cut, not refused: one budget serves every turn of an episode.
  const ids = fitTokens(body.token_ids, { contextLength: maxModelLen, maxTokens: null, truncatePromptTokens: null });
  checkTokenIds(ids, vocabSize, "token_ids");
  const named = body.logprob_token_ids ?? [];
  const count = body.logprobs ?? (model.recordsForTraining || named.length > 0 ? 0 : null);
  if (named.length === 0) checkLogprobCount(count, config.maxLogprobs, vocabSize, "logprobs");
  checkLogprobCount(body.prompt_logprobs ?? null, config.maxLogprobs, vocabSize, "prompt_logprobs");
  const chosen = toSamplingParams(body, {
    tokenizer,
    vocabSize,
    defaults: { ...NEUTRAL_DEFAULTS, eosTokenIds: defaults.eosTokenIds },
    maxTokens: outputBudget({
      contextLength: maxModelLen,
      promptTokens: ids.length,
      maxTokens,
      defaultMaxTokens: body.max_tokens === null ? null : defaults.maxNewTokens,
    }),
    logprobs: count,
    promptLogprobs: body.prompt_logprobs ?? null,
  });
  const thinking = thinkingLimitAfter(() => tokenizer.decode(ids), body.thinking_token_budget, service);
  const sampling = { ...chosen, thinking };
  const top = sampling.logprobTokenIds?.length ?? count;
  const tokens = { maxTokens: sampling.maxTokens, promptTokens: ids.length };
  const amount = logprobAmount({ ...tokens, choices: n, top, prompt: sampling.promptLogprobs }, vocabSize);
  const step = { maxTokens: 1, promptTokens: 0, choices: n, top, prompt: null };
  const kept = body.stream === true ? logprobAmount(step, vocabSize) : amount;
  checkLogprobAmount(kept, "logprobs");
  const shape = readOutputShape(body);
  const compiled = await grammarFor(service, shape === null ? null : { ...shape, reasoning: null }, {
    client,
    stopped,
  });
  const run = buildRun(tokenizer, {
    body,
    promptTokenIds: ids,
    n,
    sampling,
    model,
    compiled,
    // The sampled token is one of the N, and shown even if N is 0. Named ids stand behind it.
    top: sampling.logprobTokenIds === null ? (count === 0 ? 1 : count) : sampling.logprobTokenIds.length + 1,
    tokensAsIds: true,
    allowedArgs: config.allowedEngineArgs,
    tokensOnly: stopList(body.stop).length === 0,
    parser: () => new PlainReplyParser(),
    thoughtMeter: () => null,
  });
  const id = `generate-tokens-${requestId}`;
  const facts = replyFacts(service, body, model, { id, promptTokens: ids.length, reasoningParsed: false });
  const reply = {
    promptTokenIds: ids,
    n,
    logprobs: count !== null,
    policyVersion: model.policyVersion,
    chunkTokens: body.stream_interval ?? 1,
  };
  return { run, choices: new TokenChoices(facts, reply), logprobs: kept };
}
