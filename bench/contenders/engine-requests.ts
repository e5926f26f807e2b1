// Requests to our engine with neutral settings: greedy, and never ending before maxTokens.

import type { EngineOutput, GenerateRequest } from "../../src/engine/contract.ts";
import type { SamplingParams } from "../../src/sampling/sampling-params.ts";

export function greedyRequest(
  promptTokenIds: readonly number[],
  sampling: Partial<SamplingParams> & { maxTokens: number },
  overrides: Partial<Pick<GenerateRequest, "n" | "cacheSalt">> = {},
): GenerateRequest {
  return {
    promptTokenIds,
    n: 1,
    sampling: {
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
      eosTokenId: null,
      stopTokenIds: [],
      minTokensMask: [],
      ignoreEos: true,
      seed: null,
      logprobs: null,
      promptLogprobs: null,
      repetitionDetection: null,
      logprobTokenIds: null,
      thinking: null,
      ...sampling,
    },
    adapter: null,
    cacheSalt: null,
    priority: 0,
    grammar: null,
    constraint: null,
    ...overrides,
  };
}

/** Number of tokens in an output. Throws if the engine failed. */
export function tokenIds(output: EngineOutput): number[] {
  if (output.type !== "tokens") return [];
  if (output.finish?.reason === "error") throw new Error(`the engine failed: ${output.finish.message}`);
  return output.tokens.map((token) => token.id);
}
