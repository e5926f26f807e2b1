// Continues a choice whose replica was lost: its tokens so far become part of the prompt of a new request. That is exact
// only if nothing in the engine depends on where the output began. Otherwise a choice can only start over, and only
// while the caller has seen nothing of it.

import type { SamplingParams } from "../../sampling/sampling-params.ts";
import type { GenerateRequest } from "../contract.ts";

/**
 * The request for choice `index` alone, after it has produced `output`. null when it cannot go on. `prefilled`: the
 * caller has had the prefill output.
 */
export function remainder(
  request: GenerateRequest,
  index: number,
  output: readonly number[],
  prefilled: boolean,
): GenerateRequest | null {
  if (output.length > 0 && !canResume(request, output)) return null;
  const { sampling, promptTokenIds } = request;
  return {
    ...request,
    promptTokenIds: output.length === 0 ? promptTokenIds : [...promptTokenIds, ...output],
    n: 1,
    legalSets: prefilled ? null : request.legalSets,
    sampling: {
      ...sampling,
      seed: sampling.seed === null ? null : BigInt.asIntN(64, sampling.seed + BigInt(index)),
      maxTokens: sampling.maxTokens - output.length,
      minTokens: Math.max(0, sampling.minTokens - output.length),
      promptLogprobs: prefilled ? null : sampling.promptLogprobs,
    },
  };
}

/** The repetition penalty is no obstacle: it treats prompt and output alike. */
function canResume({ sampling, grammar, extra }: GenerateRequest, output: readonly number[]): boolean {
  return (
    grammar === null &&
    // Transfers of keys and values, and parameters whose meaning only the replica knows.
    extra === undefined &&
    sampling.frequencyPenalty === 0 &&
    sampling.presencePenalty === 0 &&
    sampling.repetitionDetection === null &&
    sampling.thinking === null &&
    // A seed's random numbers depend on the position in the output.
    (sampling.seed === null || sampling.temperature === 0) &&
    !isInsideBadWord(sampling, output)
  );
}

/** Whether the output ends with the beginning of a bad word, whose end would then not be recognised. */
function isInsideBadWord({ badWords }: SamplingParams, output: readonly number[]): boolean {
  return badWords.some((word) => {
    for (let length = 1; length < word.length && length <= output.length; length++) {
      if (word.slice(0, length).every((id, i) => output[output.length - length + i] === id)) return true;
    }
    return false;
  });
}
