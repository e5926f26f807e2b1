// The last check before a request enters the engine. The edge has refused bad requests with a clear message long
// before. This check stops anything that slipped through from reaching native code or waiting for room that can never
// exist.

import type { Runner } from "../model/runner.ts";
import type { GenerateRequest } from "./contract.ts";

/** The longest prompt plus output that the model and the pool can hold. */
export function maxModelLen(runner: Runner): number {
  return Math.min(runner.maxPositions, runner.numBlocks * runner.positionsPerBlock);
}

/** Why this request cannot run, or null. */
export function refusal(request: GenerateRequest, runner: Runner): string | null {
  const { promptTokenIds, sampling, legalSets } = request;
  if (sampling.maxTokens < 1) return `maxTokens must be at least 1, got ${sampling.maxTokens}`;
  if (promptTokenIds.length === 0) return "the prompt is empty";
  const total = promptTokenIds.length + sampling.maxTokens;
  const limit = maxModelLen(runner);
  if (total > limit) {
    return `${promptTokenIds.length} prompt tokens plus ${sampling.maxTokens} output tokens exceed the ${limit} that fit`;
  }
  if ((legalSets?.length ?? 0) >= promptTokenIds.length) return "the legal sets leave no prompt before them";
  for (const id of promptTokenIds) {
    if (!(Number.isInteger(id) && id >= 0 && id < runner.vocabSize)) {
      return `prompt token ${id} is outside the vocabulary of ${runner.vocabSize}`;
    }
  }
  return null;
}
