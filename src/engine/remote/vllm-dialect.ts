// The dialect of POST /v1/completions with token ids, as vLLM 0.17 and newer and Flywheel speak it. Everything that
// depends on the server or its version is here. Every field is sent, so that no default of the server applies.

import type { SamplingParams } from "../../sampling/sampling-params.ts";
import type { SampledToken } from "../../sampling/token-logprobs.ts";
import type { Finish, GenerateRequest } from "../contract.ts";
import { flywheelOutputs, NotExpressible, vllmOutputs } from "./structured-outputs.ts";
import { outputLogprobs, type WireLogprobs, type WirePromptLogprob } from "./wire-logprobs.ts";

export interface ServerFacts {
  /** A Flywheel server also takes `forwarded` and tells cached tokens in every chunk. */
  flywheel: boolean;
  /** Major and minor version. */
  version: readonly [number, number];
  /** Name under which it serves the base model. */
  model: string;
  vocabSize: number;
  /** This server, among all that load adapters there. */
  front: string;
}

/** Older ones ignore thinking_token_budget without a word. */
const FIRST_WITH_THINKING_BUDGET = 20;

/** Name of every adapter that a Flywheel server loads on a replica. */
export const ADAPTER_PREFIX = "fw-";

/**
 * Name under which a replica serves an adapter: one for each content, never reused. Every server in front of the replica
 * has names of its own, so that none unloads what another one needs.
 */
export function adapterName(front: string, version: string): string {
  return `${ADAPTER_PREFIX}${front}-${version}`;
}

/** The body of the request for one choice, as text. Throws NotExpressible. */
export class CompletionBodies {
  readonly #request: GenerateRequest;
  readonly #shared: string;
  readonly #id: string;

  /** `id`: unique among all requests. */
  constructor(request: GenerateRequest, server: ServerFacts, id: string, stream: boolean) {
    this.#request = request;
    this.#id = id;
    this.#shared = JSON.stringify({
      ...head(request, server),
      stream,
      ...(stream ? { stream_options: { include_usage: true, continuous_usage_stats: server.flywheel } } : {}),
      ...samplingFields(request.sampling, server),
      ...stopFields(request, server),
      ...(server.flywheel ? flywheelFields(request) : vllmFields(request, server)),
      ...extraFields(request),
    }).slice(0, -1);
  }

  /** Choice `index` draws with seed + index, as vLLM's own choices do. -1 would mean no seed; it has a neighbour's. */
  of(index: number): string {
    const { seed } = this.#request.sampling;
    const own = seed === null ? null : BigInt.asIntN(64, seed + BigInt(index));
    return `${this.#shared},"seed":${own === -1n ? MOST_SEED : own},"request_id":"${this.#id}-${index}"}`;
  }
}

const MOST_SEED = 2n ** 63n - 1n;

/** The body of the request that only computes the prompt's log-probabilities. Streams cannot carry them. */
export function promptLogprobsBody(request: GenerateRequest, server: ServerFacts, id: string): string {
  const prompt_logprobs = request.sampling.promptLogprobs;
  return JSON.stringify({
    ...head(request, server),
    stream: false,
    max_tokens: 1,
    temperature: 0,
    prompt_logprobs,
    return_token_ids: true,
    request_id: `${id}-prompt`,
  });
}

/** The body of the request for the whole distribution of the token that follows the first `position` ones of the prompt. */
export function distributionBody(request: GenerateRequest, server: ServerFacts, id: string, position: number): string {
  return JSON.stringify({
    ...head({ ...request, promptTokenIds: request.promptTokenIds.slice(0, position) }, server),
    stream: false,
    max_tokens: 1,
    temperature: 0,
    logprobs: server.vocabSize,
    ignore_eos: true,
    return_token_ids: true,
    return_tokens_as_token_ids: true,
    request_id: `${id}-at-${position}`,
  });
}

function head(request: GenerateRequest, server: ServerFacts): Record<string, unknown> {
  return {
    model: request.adapter === null ? server.model : adapterName(server.front, request.adapter),
    prompt: request.promptTokenIds,
    n: 1,
    priority: request.priority,
    ...(request.cacheSalt === null ? {} : { cache_salt: request.cacheSalt }),
  };
}

function samplingFields(sampling: SamplingParams, { vocabSize }: ServerFacts): Record<string, unknown> {
  const { logprobs, repetitionDetection: repetition } = sampling;
  return {
    max_tokens: sampling.maxTokens,
    min_tokens: sampling.minTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    min_p: sampling.minP,
    repetition_penalty: sampling.repetitionPenalty,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    logit_bias: sampling.logitBias.length === 0 ? null : Object.fromEntries(sampling.logitBias),
    allowed_token_ids: sampling.allowedTokenIds,
    bad_words: sampling.badWordTexts,
    // This endpoint has no word for the whole vocabulary.
    logprobs: logprobs === -1 ? vocabSize : logprobs,
    ...(sampling.logprobTokenIds === null ? {} : { logprob_token_ids: sampling.logprobTokenIds }),
    return_token_ids: true,
    return_tokens_as_token_ids: true,
    skip_special_tokens: false,
    ...(repetition === null
      ? {}
      : {
          repetition_detection: {
            max_pattern_size: repetition.maxPatternSize,
            min_pattern_size: repetition.minPatternSize,
            min_count: repetition.minCount,
          },
        }),
  };
}

/**
 * EOS is one of our stop ids, and the server's own is off. Only Flywheel under a constraint keeps its own: there
 * ignore_eos also lifts the constraint once the output is complete.
 */
function stopFields({ sampling, constraint }: GenerateRequest, server: ServerFacts): Record<string, unknown> {
  const { eosTokenId, ignoreEos, stopTokenIds } = sampling;
  if (server.flywheel && constraint !== null) return { stop: [], stop_token_ids: stopTokenIds, ignore_eos: ignoreEos };
  const ends = eosTokenId === null || ignoreEos ? stopTokenIds : [eosTokenId, ...stopTokenIds];
  return { stop: [], stop_token_ids: ends, ignore_eos: true };
}

function vllmFields({ sampling, constraint }: GenerateRequest, { version }: ServerFacts): Record<string, unknown> {
  const { thinking } = sampling;
  const [major, minor] = version;
  if (thinking !== null && major === 0 && minor < FIRST_WITH_THINKING_BUDGET) {
    throw new NotExpressible("thinking_token_budget");
  }
  return {
    ...(constraint === null ? {} : { structured_outputs: vllmOutputs(constraint) }),
    ...(thinking === null ? {} : { thinking_token_budget: thinking.maxTokens }),
  };
}

/** `forwarded` holds what the request means, where the public fields would say it only roughly. */
function flywheelFields({ sampling, constraint }: GenerateRequest): Record<string, unknown> {
  const { thinking } = sampling;
  if (thinking === null && constraint === null) return {};
  const { shape, reasoning } = constraint ?? { shape: null, reasoning: null };
  const calls = shape?.kind === "calls_or" ? shape.calls : shape?.kind === "tool_calls" ? shape : null;
  return {
    structured_outputs: shape === null ? undefined : flywheelOutputs(shape),
    forwarded: {
      tool_calls: calls && {
        ...{ format: calls.format, tools: calls.tools, parallel: calls.parallel },
        ...(shape?.kind === "calls_or" && shape.answer === null ? { in_text: true } : {}),
      },
      reasoning,
      thinking:
        thinking === null
          ? null
          : {
              start_ids: thinking.startIds,
              end_ids: thinking.endIds,
              max_tokens: thinking.maxTokens,
              open: thinking.open,
            },
    },
  };
}

function extraFields({ extra }: GenerateRequest): Record<string, unknown> {
  return {
    ...(extra?.kvTransferParams ? { kv_transfer_params: extra.kvTransferParams } : {}),
    ...(extra?.engineArgs ? { vllm_xargs: extra.engineArgs } : {}),
  };
}

/** vLLM tells about a transfer only in a reply that is not streamed. The prefill side of a transfer asks for it. */
export function needsWholeReply({ extra }: GenerateRequest): boolean {
  const params = extra?.kvTransferParams as { do_remote_decode?: unknown } | undefined;
  return params?.do_remote_decode === true;
}

export interface WireChoice {
  token_ids?: readonly number[] | null;
  logprobs?: WireLogprobs | null;
  finish_reason?: string | null;
  stop_reason?: number | string | null;
  prompt_logprobs?: readonly (Readonly<Record<string, WirePromptLogprob>> | null)[] | null;
}

export interface WireError {
  message?: string;
  type?: string;
  param?: string | null;
  code?: number | string | null;
}

/** A chunk of a stream, or a whole reply. */
export interface WireCompletion {
  choices?: readonly WireChoice[];
  usage?: { prompt_tokens_details?: { cached_tokens?: number | null } | null } | null;
  kv_transfer_params?: Readonly<Record<string, unknown>> | null;
  error?: WireError;
}

/** null: no JSON object. */
export function parseReply(text: string): WireCompletion | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}

export function tokensOf(choice: WireChoice, sampling: SamplingParams, into: SampledToken[]): void {
  const { token_ids: ids, logprobs } = choice;
  if (!ids) throw new Error("the engine returns no token ids");
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]!;
    if (sampling.logprobs !== null && !logprobs) throw new Error("the engine returns no log-probabilities");
    into.push({ id, logprobs: sampling.logprobs === null ? null : outputLogprobs(logprobs!, i, id, sampling) });
  }
}

/** null: the choice goes on. "lost": the server gave the request up. */
export function finishOf(choice: WireChoice, { eosTokenId, ignoreEos }: SamplingParams): Finish | "lost" | null {
  const stopReason = choice.stop_reason ?? null;
  switch (choice.finish_reason) {
    case undefined:
    case null:
      return null;
    case "stop":
      return { reason: "stop", stopReason: stopReason === eosTokenId && !ignoreEos ? null : stopReason };
    case "length":
      return { reason: "length", stopReason: null };
    case "repetition":
      return { reason: "repetition", stopReason };
    default:
      return "lost";
  }
}
