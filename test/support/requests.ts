// Requests for tests, with every field at its neutral value and overridden as needed, and helpers to read their
// outputs.

import type { EngineOutput, Finish, GenerateRequest, PrefillOutput } from "../../src/engine/contract.ts";
import type { SamplingParams } from "../../src/sampling/sampling-params.ts";

/** Greedy, 8 tokens, ends on token 2. */
export function samplingParams(overrides: Partial<SamplingParams> = {}): SamplingParams {
  return {
    temperature: 0,
    topK: 0,
    topP: 1,
    minP: 0,
    repetitionPenalty: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: [],
    allowedTokenIds: null,
    badWords: [],
    badWordTexts: [],
    minTokens: 0,
    maxTokens: 8,
    eosTokenId: 2,
    stopTokenIds: [],
    minTokensMask: [2],
    ignoreEos: false,
    seed: null,
    logprobs: null,
    promptLogprobs: null,
    repetitionDetection: null,
    logprobTokenIds: null,
    thinking: null,
    ...overrides,
  };
}

export function generateRequest(
  promptTokenIds: readonly number[],
  sampling: Partial<SamplingParams> = {},
  overrides: Partial<Omit<GenerateRequest, "sampling" | "promptTokenIds">> = {},
): GenerateRequest {
  return {
    promptTokenIds,
    n: 1,
    sampling: samplingParams(sampling),
    adapter: null,
    cacheSalt: null,
    priority: 0,
    grammar: null,
    legalSets: null,
    constraint: null,
    ...overrides,
  };
}

/** Token ids of one choice, joined over its outputs. */
export function tokensOf(outputs: readonly EngineOutput[], index = 0): number[] {
  return outputs.flatMap((o) => (o.type === "tokens" && o.index === index ? o.tokens.map((token) => token.id) : []));
}

/** The finish of a choice; null while it runs. */
export function finishOf(outputs: readonly EngineOutput[], index = 0): Finish | null {
  return outputs.reduce<Finish | null>((last, o) => (o.type === "tokens" && o.index === index ? o.finish : last), null);
}

export function prefillOf(outputs: readonly EngineOutput[]): PrefillOutput {
  return outputs.find((output) => output.type === "prefill")!;
}
