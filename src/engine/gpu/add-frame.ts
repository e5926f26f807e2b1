// A request in the words of the process: its rows, the prompt they share, and how their tokens are chosen. What only the
// server can follow (grammars, thinking budgets, bad words of several tokens, repetition) is left out.

import { randomKey } from "../../sampling/random.ts";
import { GREEDY_BELOW } from "../../sampling/sampler.ts";
import type { SamplingParams } from "../../sampling/sampling-params.ts";
import { cacheRoot } from "../cache/prefix-cache.ts";
import type { ArraysToSend } from "./frames.ts";
import type { Row } from "./row-table.ts";

export function addFrame(
  rows: readonly Row[],
  adapter: number,
  { rank, arrival, vocabSize }: { rank: number; arrival: number; vocabSize: number },
): [object, ArraysToSend] {
  const { request, handle } = rows[0]!.request;
  const { adapter: version, cacheSalt, sampling, legalSets, promptTokenIds } = request;
  const keys = rows.map(({ index }) => randomKey(sampling.seed, index)).map(({ low, high }) => [low, high]);
  const header = {
    type: "add",
    request: handle,
    rows: rows.map(({ number }) => number),
    root: Buffer.from(cacheRoot(version, cacheSalt), "latin1").toString("hex"),
    ...{ adapter, rank, arrival },
    masked: rows[0]!.masked,
    sampling: { ...samplingOf(sampling, vocabSize), keys },
  };
  const prompt = Int32Array.from(promptTokenIds);
  return [header, legalSets === null ? { prompt } : { prompt, ...legalArrays(legalSets, Math.ceil(vocabSize / 32)) }];
}

/** In the words of the protocol, without `keys`. */
export function samplingOf(sampling: SamplingParams, vocabSize: number) {
  const { temperature, topK, topP, minP, minTokens, minTokensMask, maxTokens, logprobs, promptLogprobs } = sampling;
  return {
    temperature: temperature < GREEDY_BELOW ? 0 : temperature,
    ...{ topK, topP, minP, minTokens, minTokensMask, maxTokens, logprobs, promptLogprobs },
    repetition: sampling.repetitionPenalty,
    frequency: sampling.frequencyPenalty,
    presence: sampling.presencePenalty,
    bias: sampling.logitBias,
    allowed: sampling.allowedTokenIds,
    banned: sampling.badWords.filter((word) => word.length === 1).map((word) => word[0]!),
    eos: sampling.ignoreEos ? null : sampling.eosTokenId,
    stopIds: sampling.stopTokenIds,
    named: sampling.logprobTokenIds?.filter((id) => id < vocabSize) ?? null,
  };
}

function legalArrays(legalSets: readonly (Int32Array | null)[], words: number): ArraysToSend {
  const sets = legalSets.filter((set) => set !== null);
  const bits = new Int32Array(sets.length * words);
  for (const [i, set] of sets.entries()) bits.set(set.subarray(0, words), i * words);
  let next = 0;
  const legalIndex = Int32Array.from(legalSets, (set) => (set === null ? -1 : next++));
  return { legalIndex, legalBits: { values: bits, shape: [sets.length, words] } };
}
