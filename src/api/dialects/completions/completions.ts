// POST /v1/completions, the older text dialect: read, check, prepare, reply.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { invalidCombination, invalidValue, type ServiceError } from "../../../errors/service-error.ts";
import { givingWay } from "../../../pacing/turns.ts";
import { Detokenizer } from "../../../text/detokenizer.ts";
import { encodeBounded } from "../../../text/prompt.ts";
import { fitTokens, type LengthRules, outputBudget } from "../../../text/prompt-length.ts";
import type { Tokenizer } from "../../../text/tokenizer-contract.ts";
import {
  answer,
  failedCompletion,
  type PrepareContext,
  type PreparedAnswer,
  type Reply,
} from "../../generation/answer.ts";
import { grammarFor } from "../../generation/constraint.ts";
import { buildRun, type GenerationPlan, type RunOutput } from "../../generation/generation.ts";
import {
  checkLogprobAmount,
  checkLogprobCount,
  checkLogprobSpelling,
  checkPriority,
  checkRepeated,
  checkStops,
  checkStream,
  checkTokenIds,
  lengthRules,
  logprobAmount,
  readChoiceCount,
  thinkingLimitAfter,
} from "../../generation/limits.ts";
import { chunkUsage, jsonWith, type ReplyFacts, replyFacts, usageOf } from "../../generation/reply.ts";
import { toSamplingParams } from "../../generation/sampling.ts";
import { bodyWithPriority } from "../../http/headers.ts";
import { DONE } from "../../http/streams.ts";
import { route } from "../../route.ts";
import { readBody } from "../../schema/body.ts";
import type { Service } from "../../service.ts";
import { PromptChoices } from "./completions.reply.ts";
import {
  type CompletionBody,
  CompletionChunk,
  CompletionReply,
  CompletionRequest,
  completionConstraint,
  forwardedThinking,
} from "./completions.schema.ts";

// Checks text completion requests: the four forms of a prompt and the rules between fields.

/** A prompt as text or as token ids. */
type Prompt = string | readonly number[];

const MAX_PROMPTS = 1024;

function validateCompletion(raw: unknown, { policy }: { policy: "priority" | "fcfs" }) {
  const source = (typeof raw === "object" && raw !== null ? raw : {}) as Record<string, unknown>;
  checkLogprobSpelling(source);
  const { value: body, ignored } = readBody(CompletionRequest, raw ?? null);
  const prompts = readPrompts(body.prompt);
  if (body.suffix !== undefined && body.suffix !== null && body.suffix !== "") {
    throw invalidValue("suffix is not supported.", "suffix");
  }
  const { thinking } = body.forwarded ?? {};
  checkRepeated(body, prompts.length, thinking ? thinking.start_ids.length + thinking.end_ids.length : 0);
  checkStops(body.stop);
  checkStream(body, source.stream_options);
  checkPriority(body, policy);
  if ((body.logprobs ?? 0) < 0) throw invalidValue("logprobs must be 0 or more.", "logprobs");
  if (body.max_tokens === 0 && body.echo !== true) {
    throw invalidValue("max_tokens must be at least 1, or 0 together with echo.", "max_tokens");
  }
  if (body.max_tokens === 0 && (body.logprob_token_ids ?? []).length > 0) {
    const message = "logprob_token_ids needs output, but with max_tokens: 0 no output tokens are generated.";
    throw invalidCombination(message, "logprob_token_ids");
  }
  return { body, prompts, ignored };
}

function readPrompts(prompt: CompletionBody["prompt"]): Prompt[] {
  if (prompt.length === 0) throw invalidValue("prompt must not be empty.", "prompt");
  if (typeof prompt === "string") return [prompt];
  if (typeof prompt[0] === "number") return [prompt as number[]];
  if (prompt.length > MAX_PROMPTS) throw invalidValue(`prompt has more than ${MAX_PROMPTS} entries.`, "prompt");
  return prompt as (string | number[])[];
}

// Prepares a text completion for the engine: one run per prompt. All checks happen before the first run.

const DEFAULT_MAX_TOKENS = 16;

async function prepareCompletion(
  service: Service,
  body: CompletionBody,
  prompts: readonly Prompt[],
  { model, requestId, client, stopped }: PrepareContext,
): Promise<PreparedAnswer> {
  const { config } = service;
  const { maxModelLen, vocabSize } = service.engine.info;
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

  let kept = 0;
  const runs: GenerationPlan[] = [];
  const choices: PromptChoices[] = [];
  for (const [promptIndex, prompt] of prompts.entries()) {
    if (promptIndex > 0) await service.turns.next();
    if (promptIndex > 0 && stopped.aborted) break; // nobody waits for the others
    const { ids, text } = await readPrompt(service, body, prompt, length, client.id);
    const chosen = toSamplingParams(body, service, {
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
    const longest = body.stream === true ? 1 : sampling.maxTokens;
    kept += logprobAmount({ choices: n, maxTokens: longest, top, ...shown }, vocabSize);
    runs.push(
      buildRun(service, {
        body,
        promptTokenIds: ids,
        n,
        sampling,
        model,
        compiled,
        // The older format adds the sampled token to the most likely ones.
        top: top === null ? null : top + 1,
        tokensAsIds,
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
    choices.push(new PromptChoices(reply, service.text.tokenizer));
  }
  checkLogprobAmount(kept, "logprobs");
  const total = runs.reduce((sum, run) => sum + run.request.promptTokenIds.length, 0);
  const facts = replyFacts(service, body, model, {
    id: `cmpl-${requestId}`,
    promptTokens: total,
    reasoningParsed: false,
  });
  return { runs, logprobs: kept, reply: new TextReply(facts, choices) };
}

/** The tokens the model sees, and their text. */
async function readPrompt(
  { text: model, engine }: Service,
  { add_special_tokens }: CompletionBody,
  prompt: Prompt,
  length: LengthRules,
  client: string,
): Promise<{ ids: number[]; text: () => string }> {
  const options = { addSpecialTokens: add_special_tokens ?? true };
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

export function registerCompletions(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/completions",
    route("inference", "Text completion", { body: CompletionRequest, reply: CompletionReply, chunk: CompletionChunk }),
    (request, reply) => answerCompletion(service, request, reply),
  );
}

export function answerCompletion(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return answer(service, request, reply, () => {
    const { body, prompts, ignored } = validateCompletion(bodyWithPriority(request), service.engine.info);
    return {
      ...{ body, ignored },
      choices: readChoiceCount(body.n) * prompts.length,
      prepare: (context) => prepareCompletion(service, body, prompts, context),
    };
  });
}

/**
 * A text completion, whole or as chunks. This dialect has no role chunks. The first chunk of each choice carries the prompt's
 * ids and the echo. The last one, or the usage chunk, carries the fingerprint.
 */
class TextReply implements Reply {
  readonly #facts: ReplyFacts;
  readonly #prompts: readonly PromptChoices[];
  readonly #head: string;
  #size = 0;

  constructor(facts: ReplyFacts, prompts: readonly PromptChoices[]) {
    this.#facts = facts;
    this.#prompts = prompts;
    const { id, created, model } = facts;
    this.#head = JSON.stringify({ id, object: "text_completion", created, model }).slice(0, -1);
  }

  get size(): number {
    return this.#size + this.#prompts.reduce((sum, prompt) => sum + prompt.logprobSize, 0);
  }

  async accept(run: number, output: RunOutput): Promise<void> {
    await this.#prompts[run]!.accept(output);
    if (output.type === "delta") this.#size += 32 * output.tokenIds.length;
  }

  take(): string {
    this.#size = 0;
    let events = "";
    for (const prompt of this.#prompts) {
      for (const { choice, json, ended } of prompt.take()) {
        const fingerprint = ended && !this.#facts.includeUsage ? this.#fingerprint : "";
        events += `data: ${this.#head},"choices":[${json}]${fingerprint}${this.#continuousUsage(prompt, choice)}}\n\n`;
      }
    }
    return events;
  }

  closing(): string {
    if (!this.#facts.includeUsage) return DONE;
    const usage = JSON.stringify(chunkUsage(this.#usage));
    return `data: ${this.#head},"choices":[]${this.#fingerprint},"usage":${usage}}\n\n${DONE}`;
  }

  failure(error: ServiceError): string {
    return failedCompletion(error);
  }

  async toJson(): Promise<string> {
    const giveWay = givingWay();
    let choices = "";
    for (const prompt of this.#prompts) {
      for (const { json } of prompt.take()) {
        choices += `${choices === "" ? "" : ","}${json}`;
        await giveWay();
      }
    }
    const { id, created, model, systemFingerprint } = this.#facts;
    const reply = {
      ...{ id, object: "text_completion", created, model },
      choices: null,
      service_tier: null,
      system_fingerprint: systemFingerprint,
      usage: this.#usage,
      kv_transfer_params: this.#prompts.find((prompt) => prompt.kvTransferParams)?.kvTransferParams ?? null,
    };
    return jsonWith(reply, { choices: `[${choices}]` });
  }

  /** Of what was taken. */
  get #usage() {
    const sum = (value: (prompt: PromptChoices) => number) => this.#prompts.reduce((all, one) => all + value(one), 0);
    const completion = sum(({ shownTokens }) => shownTokens);
    return usageOf(this.#facts, { completion, cached: sum(({ cachedTokens }) => cachedTokens), reasoning: 0 });
  }

  get #fingerprint(): string {
    return `,"system_fingerprint":${JSON.stringify(this.#facts.systemFingerprint)}`;
  }

  #continuousUsage(prompt: PromptChoices, choice: number): string {
    if (!this.#facts.includeUsage || !this.#facts.continuousUsage) return "";
    const counts = { completion: prompt.shownTokensOf(choice), cached: prompt.cachedTokens, reasoning: 0 };
    const usage = usageOf({ ...this.#facts, promptTokens: prompt.promptTokens }, counts);
    return `,"usage":${JSON.stringify(chunkUsage(usage))}`;
  }
}
