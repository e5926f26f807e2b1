// Prepares a text completion for the engine: one run per prompt. All checks happen before the first run.
import { Detokenizer } from "../../text/detokenizer.ts";
import { encodeBounded } from "../../text/prompt.ts";
import { fitTokens, type LengthRules, outputBudget } from "../../text/prompt-length.ts";
import { PlainReplyParser } from "../../text/reply-parser.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { grammarFor } from "../request/constraint.compile.ts";
import { lengthRules } from "../request/length-rules.ts";
import { checkLogprobAmount, checkLogprobCount, logprobAmount } from "../request/logprob-request.ts";
import { toSamplingParams } from "../request/sampling-params.ts";
import { thinkingLimitAfter } from "../request/thinking-limit.ts";
import { checkTokenIds } from "../request/token-ids.ts";
import type { PrepareContext } from "../run/answer.ts";
import { type ReplyFacts, replyFacts } from "../run/reply-facts.ts";
import { buildRun, type Run } from "../run/run-builder.ts";
import type { Service } from "../service.ts";
import { PromptChoices } from "./completions.response.ts";
import type { CompletionBody } from "./completions.schema.ts";
import type { Prompt } from "./completions.validate.ts";
import { completionConstraint, forwardedThinking } from "./forwarded.schema.ts";

const DEFAULT_MAX_TOKENS = 16;

export interface PreparedCompletion {
  facts: ReplyFacts;
  runs: Run[];
  /** One per run. */
  prompts: PromptChoices[];
  /** How many log-probabilities are held at once. */
  logprobs: number;
}

export async function prepareCompletion(
  service: Service,
  body: CompletionBody,
  prompts: readonly Prompt[],
  { model, requestId, client, stopped }: PrepareContext,
): Promise<PreparedCompletion> {
  const { config, defaults, engine } = service;
  const { maxModelLen, vocabSize } = engine.info;
  const { tokenizer } = service.text;
  const n = readChoiceCount(body.n);
  const promptOnly = body.max_tokens === 0;
  // The engine generates at least one token; it is hidden.
  const maxTokens = promptOnly ? 1 : (body.max_tokens ?? DEFAULT_MAX_TOKENS);
  const length = lengthRules({ ...body, max_tokens: maxTokens }, maxModelLen);
  const count = body.logprobs ?? null;
  const promptLogprobs = body.prompt_logprobs ?? null;
  if ((body.logprob_token_ids ?? []).length === 0) checkLogprobCount(count, config.maxLogprobs, vocabSize, "logprobs");
  checkLogprobCount(promptLogprobs, config.maxLogprobs, vocabSize, "prompt_logprobs");
  const compiled = await grammarFor(service, completionConstraint(body), { client, stopped });
  const tokensAsIds = body.return_tokens_as_token_ids ?? config.returnTokensAsTokenIds;
  const returnTokenIds = body.return_token_ids ?? model.recordsForTraining;

  let amount = 0;
  let streamed = 0;
  const runs: Run[] = [];
  const choices: PromptChoices[] = [];
  for (const [promptIndex, prompt] of prompts.entries()) {
    if (promptIndex > 0) await service.turns.next();
    const { ids, text } = await readPrompt(
      service,
      prompt,
      { addSpecialTokens: body.add_special_tokens ?? true },
      length,
      client.id,
    );
    const chosen = toSamplingParams(body, {
      tokenizer,
      vocabSize,
      defaults,
      maxTokens: outputBudget({ contextLength: maxModelLen, promptTokens: ids.length, maxTokens }),
      logprobs: count,
      promptLogprobs: promptLogprobs ?? (body.echo === true ? count : null),
    });
    const thinking =
      forwardedThinking(body.forwarded, vocabSize) ?? thinkingLimitAfter(text, body.thinking_token_budget, service);
    const sampling = { ...chosen, thinking };
    const top = sampling.logprobTokenIds?.length ?? sampling.logprobs;
    const echoes = body.echo === true && count !== null;
    const showsPrompt = sampling.promptLogprobs !== null && body.stream !== true;
    const shown = {
      promptTokens: n * ids.length * (Number(echoes) + Number(showsPrompt)),
      prompt: sampling.promptLogprobs,
    };
    amount += logprobAmount({ choices: n, maxTokens: sampling.maxTokens, top, ...shown }, vocabSize);
    streamed += logprobAmount({ choices: n, maxTokens: 1, top, ...shown }, vocabSize);
    runs.push(
      buildRun(tokenizer, {
        body,
        promptTokenIds: ids,
        n,
        sampling,
        model,
        compiled,
        // The older format adds the sampled token to the most likely ones.
        top: top === null ? null : top + 1,
        tokensAsIds,
        allowedArgs: config.allowedEngineArgs,
        parser: () => new PlainReplyParser(),
        thoughtMeter: () => null,
      }),
    );
    const reply = {
      promptIndex,
      promptTokenIds: ids,
      n,
      echo: body.echo === true ? text() : null,
      promptOnly,
      logprobs: count !== null,
      tokensAsIds,
      returnTokenIds,
      // Echo with log probabilities computes the prompt's too.
      promptLogprobs: showsPrompt,
      streams: body.stream === true,
    };
    choices.push(new PromptChoices(reply, tokenizer));
  }
  const kept = body.stream === true ? streamed : amount;
  checkLogprobAmount(kept, "logprobs");
  const total = runs.reduce((sum, run) => sum + run.request.promptTokenIds.length, 0);
  const facts = replyFacts(service, body, model, {
    id: `cmpl-${requestId}`,
    promptTokens: total,
    reasoningParsed: false,
  });
  return { facts, runs, prompts: choices, logprobs: kept };
}

/** The tokens the model sees, and their text. */
async function readPrompt(
  { text: model, engine }: Service,
  prompt: Prompt,
  options: { addSpecialTokens: boolean },
  length: LengthRules,
  client: string,
): Promise<{ ids: number[]; text: () => string }> {
  const whole = typeof prompt === "string" ? await encodeBounded(model, prompt, options, length, client) : prompt;
  const ids = fitTokens(whole, length);
  // Text needs this check too: a tokenizer may have more tokens than the model has rows.
  checkTokenIds(ids, engine.info.vocabSize, "prompt");
  if (ids.length < whole.length) return { ids, text: () => spelled(model.tokenizer, ids) };
  return { ids, text: () => (typeof prompt === "string" ? prompt : model.tokenizer.decode(ids)) };
}

/** The text of a truncated prompt, token by token as in log probabilities. Keeps a leading space. */
function spelled(tokenizer: Tokenizer, ids: readonly number[]): string {
  const detokenizer = new Detokenizer(tokenizer, { promptTokenIds: [], keepLeadingSpace: true });
  return ids.map((id) => detokenizer.push(id)).join("") + detokenizer.incomplete();
}
