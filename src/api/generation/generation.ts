// A request's generation on the engine: what is asked of it, and what comes back.
import type { Finish, GenerateRequest, Generation, PrefillOutput, UsageOutput } from "../../engine/contract.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { givingWay } from "../../pacing/turns.ts";
import type { SamplingParams } from "../../sampling/sampling-params.ts";
import { noText, OutputText } from "../../text/output-text.ts";
import type { ReasoningParser } from "../../text/reasoning.ts";
import { PlainReplyParser, type ReplyParser } from "../../text/reply-parser.ts";
import { StopStrings } from "../../text/stop-strings.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { ModelLease } from "../models/model-registry.ts";
import type { Service } from "../service.ts";
import { shuttingDown } from "./admission.ts";
import { type ChoiceDelta, ChoiceOutput } from "./choice-output.ts";
import type { CompiledConstraint } from "./constraint.ts";
import type { SharedFields } from "./fields.schema.ts";
import type { LiveRequest } from "./live-requests.ts";
import type { HeldLogprobs } from "./logprob-memory.ts";
import { type EngineArgFields, engineArgs } from "./sampling.ts";

// Builds what the engine gets and what turns its output into text: one GenerateRequest, and one ChoiceOutput per choice. The
// last step before the engine, shared by all dialects.

type OutputFields = Omit<SharedFields, keyof EngineArgFields> & EngineArgFields;

export interface GenerationSpec {
  body: OutputFields;
  promptTokenIds: readonly number[];
  n: number;
  sampling: SamplingParams;
  model: ModelLease;
  compiled: CompiledConstraint;
  /** Alternatives per token; null: no log probabilities. */
  top: number | null;
  tokensAsIds: boolean;
  /** Left out: the text is the answer. */
  parsers?: { parser(): ReplyParser; thoughtMeter(): ReasoningParser | null };
  /** Special tokens the parser wants to see. */
  shownTokenIds?: readonly number[];
  /** Nobody reads the text, and no stop string looks at it. */
  tokensOnly?: boolean;
  /** More parameters for other engines, beside those that sampling.ts lets through. */
  extra?: Readonly<Record<string, unknown>>;
}

export interface GenerationPlan {
  request: GenerateRequest;
  choices: ChoiceOutput[];
}

export function buildRun(service: Pick<Service, "text" | "config">, spec: GenerationSpec): GenerationPlan {
  const { tokenizer } = service.text;
  const { body, sampling, promptTokenIds, parsers } = spec;
  const stops = new StopStrings(stopList(body.stop));
  const choices = Array.from(
    { length: spec.n },
    (_, index) =>
      new ChoiceOutput({
        index,
        text: spec.tokensOnly ? noText : outputText(tokenizer, spec, stops),
        parser: parsers?.parser() ?? new PlainReplyParser(),
        thoughtMeter: parsers?.thoughtMeter() ?? null,
        logprobs:
          spec.top === null ? null : { walk: new TokenTextWalk(tokenizer, { asIds: spec.tokensAsIds }), top: spec.top },
      }),
  );
  const extra = { ...spec.extra, ...engineArgs(body, service.config.allowedEngineArgs) };
  const request: GenerateRequest = {
    promptTokenIds,
    n: spec.n,
    sampling,
    adapter: spec.model.adapter,
    cacheSalt: body.cache_salt ?? null,
    priority: Number(body.priority ?? 0n),
    legalSets: null,
    ...spec.compiled,
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
  return { request, choices };
}

function outputText(tokenizer: Tokenizer, { body, ...spec }: GenerationSpec, stops: StopStrings): OutputText {
  return new OutputText(tokenizer, {
    promptTokenIds: spec.promptTokenIds,
    skipSpecialTokens: body.skip_special_tokens ?? true,
    shownTokenIds: spec.shownTokenIds ?? [],
    spacesBetweenSpecialTokens: body.spaces_between_special_tokens ?? true,
    keepLeadingSpace: spec.compiled.grammar !== null,
    stops,
    includeStop: body.include_stop_str_in_output ?? false,
    minTokens: spec.sampling.minTokens,
  });
}

export function stopList(stop: SharedFields["stop"]): readonly string[] {
  return stop === undefined || stop === null ? [] : [stop].flat();
}

// Runs one admitted request on the engine: aborts when the client leaves or the server shuts down, stops choices whose stop
// string matched, and records metrics. When `outputs` ends, for whatever reason, the engine holds nothing of the request.

export interface GenerationParts {
  request: GenerateRequest;
  choices: readonly ChoiceOutput[];
  /** performance.now() when the request came in. */
  arrivedAt: number;
  /** Aborted when the client is gone. */
  clientGone: AbortSignal;
  /** The request that this is a part of. */
  live: LiveRequest;
  /** Room for the log-probabilities of its reply; null: it does not keep them. */
  held: HeldLogprobs | null;
}

export type RunOutput = PrefillOutput | UsageOutput | ChoiceDelta;

export class RunningGeneration {
  readonly #service: Service;
  readonly #parts: GenerationParts;
  readonly #lastTokenAt: number[] = [];
  #generation: Generation | null = null;
  #aborted = false;
  #cachedTokens = 0;
  #submittedAt = 0;
  /** From `#submittedAt` on. */
  #queuedMs: number | null = null;
  #firstTokenAt: number | null = null;

  constructor(service: Service, parts: GenerationParts) {
    this.#service = service;
    this.#parts = parts;
  }

  /** In metrics, adapters count as their base model. One series per policy step would never end. */
  get #model(): string {
    return this.#service.models.baseName;
  }

  /** Number of choices. */
  get n(): number {
    return this.#parts.request.n;
  }

  /** Ends the work before the engine's next step; `outputs` then ends without an error. */
  abort(): void {
    this.#aborted = true;
    this.#generation?.abort();
  }

  /**
   * Outputs until every choice has ended. Ends early, without an error, when the client is gone. Throws 500, 503, and
   * 400 if the request's own controls leave no token.
   */
  async *outputs(): AsyncGenerator<RunOutput> {
    const { choices, clientGone, live } = this.#parts;
    const cut = this.#service.cutSignal;
    const ends = [clientGone, cut, live.cancelled];
    const abort = () => this.abort();
    for (const end of ends) end.addEventListener("abort", abort, { once: true });
    try {
      if (ends.every(({ aborted }) => !aborted)) yield* this.#generate();
      if (choices.every((choice) => choice.end !== null)) return;
      live.cancelled.throwIfAborted();
      if (cut.aborted) throw shuttingDown();
      if (!this.#aborted && !clientGone.aborted) {
        throw engineFailed("the engine ended before every choice was complete");
      }
    } finally {
      this.#generation?.abort();
      for (const end of ends) end.removeEventListener("abort", abort);
      this.#record();
    }
  }

  async *#generate(): AsyncGenerator<RunOutput> {
    const { request, choices, live, held } = this.#parts;
    this.#submittedAt = performance.now();
    live.begins(request.promptTokenIds.length, request.priority);
    const generation = this.#service.engine.generate(request);
    this.#generation = generation;
    const giveWay = givingWay();
    for await (const output of generation) {
      if (output.type !== "tokens") {
        this.#cachedTokens = output.cachedTokens ?? 0;
        if (output.type === "prefill") {
          this.#queuedMs = output.queuedMs ?? null;
          live.prefilled(this.#cachedTokens);
        }
        yield output;
        continue;
      }
      const choice = choices[output.index]!;
      const failed = output.finish?.reason === "error" ? output.finish : null;
      // Tokens before the error count, because a stop string in them may have ended the choice.
      // a fast engine would fill the loop with the log-probabilities of many steps
      if (request.sampling.logprobs !== null) await giveWay();
      const delta = choice.accept(failed === null ? output : { ...output, finish: null });
      held?.add(delta.logprobs);
      if (delta.stopEngine) generation.stop(output.index);
      this.#tick(output.index, delta.tokenIds.length);
      if (failed === null || delta.tokenIds.length > 0) yield delta;
      if (failed !== null && choice.end === null) throw finishError(failed);
      if (choices.every((choice) => choice.end !== null)) return;
    }
  }

  #tick(index: number, tokens: number): void {
    if (tokens === 0) return;
    const now = performance.now();
    const last = this.#lastTokenAt[index];
    if (last !== undefined) this.#service.metrics.interTokenLatency(this.#model, (now - last) / 1000 / tokens);
    this.#lastTokenAt[index] = now;
    this.#parts.live.output += tokens;
    if (this.#firstTokenAt !== null) return;
    this.#firstTokenAt = now;
    this.#service.live.firstToken(now - this.#parts.arrivedAt);
  }

  #record(): void {
    const { request, choices, arrivedAt } = this.#parts;
    this.#service.metrics.requestEnded({
      model: this.#model,
      promptTokens: request.promptTokenIds.length,
      cachedTokens: this.#cachedTokens,
      generated: choices.map((choice) => choice.tokens),
      finishReasons: choices.map((choice) => choice.end?.reason ?? "abort"),
      n: request.n,
      maxTokens: request.sampling.maxTokens,
      arrivedAt,
      submittedAt: this.#submittedAt,
      queuedMs: this.#queuedMs,
      firstTokenAt: this.#firstTokenAt,
      endedAt: performance.now(),
    });
  }
}

function finishError({ message, fault }: Finish): ServiceError {
  switch (fault) {
    case undefined:
    case "unloaded":
      return engineFailed(message);
    case "contradiction":
      return new ServiceError("contradictory_controls", message!);
    case "constraint":
      return new ServiceError("constraint_failed", message!, { param: "structured_outputs" });
    case "slow":
      return new ServiceError("constraint_timeout", message!, { param: "structured_outputs", retryAfter: 1 });
    case "refused":
      return new ServiceError("engine_refused", message!);
    case "unavailable":
    case "lost":
      return new ServiceError("engine_unavailable", message!, { retryAfter: 1 });
    default:
      throw new Error(`fault ${fault satisfies never}`);
  }
}

function engineFailed(reason: string | undefined): ServiceError {
  // The reason goes to the log only. It may describe the server's internals.
  return new ServiceError("engine_failed", "The engine could not complete this request.", {
    cause: new Error(reason ?? "the engine gave no reason"),
  });
}
