// Requests to our engine with neutral settings: greedy, and never ending before maxTokens.

import type { EngineOutput, GenerateRequest } from "../../src/engine/contract.ts";
import type { SamplingParams } from "../../src/sampling/sampling-params.ts";
import { generateRequest } from "../../test/support/requests.ts";

export function greedyRequest(
  promptTokenIds: readonly number[],
  sampling: Partial<SamplingParams> & { maxTokens: number },
  overrides: Partial<Pick<GenerateRequest, "n" | "cacheSalt">> = {},
): GenerateRequest {
  const endless = { eosTokenId: null, minTokensMask: [], ignoreEos: true };
  return generateRequest(promptTokenIds, { ...endless, ...sampling }, overrides);
}

/** Tokens of an output. Throws if the engine failed. */
export function tokenIds(output: EngineOutput): number[] {
  if (output.type !== "tokens") return [];
  if (output.finish?.reason === "error") throw new Error(`the engine failed: ${output.finish.message}`);
  return output.tokens.map((token) => token.id);
}
