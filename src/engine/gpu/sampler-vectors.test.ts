// The tokens that this sampler chooses, for the samplers of other languages: trainer/tests/sampler-vectors.json. Written
// again with UPDATE_DOCS=1, which is right only after a change that is meant to change tokens.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { samplingParams } from "../../../test/support/requests.ts";
import { NoLegalTokenError } from "../../sampling/errors.ts";
import { randomKey } from "../../sampling/random.ts";
import { SequenceSampler } from "../../sampling/sampler.ts";
import type { SamplingParams } from "../../sampling/sampling-params.ts";
import { tokenSet } from "../../sampling/token-set.ts";
import { samplingOf } from "./add-frame.ts";

const FILE = new URL("../../../trainer/tests/sampler-vectors.json", import.meta.url);

/** Logits by formula: f32(((id + start) * factor mod 2^32) / 2^29 * scale - 4 * scale), with some ids set. */
interface RowFormula {
  size: number;
  start: number;
  factor: number;
  scale: number;
  set: [number, number][];
}

const ROWS: RowFormula[] = [
  { size: 517, start: 1, factor: 2654435761, scale: 1, set: [] },
  { size: 517, start: 9, factor: 2246822519, scale: 0.25, set: [[5, 4.5]] },
  // Many equal ones, at the top too.
  { size: 517, start: 0, factor: 0, scale: 0.5, set: [7, 8, 300, 516].map((id) => [id, 1]) },
  { size: 151_936, start: 3, factor: 3266489917, scale: 3, set: [] },
  { size: 151_936, start: 77, factor: 668265263, scale: 1, set: [[151_935, 11]] },
];

function logitsOf({ size, start, factor, scale, set }: RowFormula): Float32Array {
  const row = Float32Array.from(
    { length: size },
    (_, id) => ((Math.imul(id + start, factor) >>> 0) / 2 ** 29) * scale - 4 * scale,
  );
  for (const [id, value] of set) row[id] = value;
  return row;
}

interface Case {
  name: string;
  params: Partial<SamplingParams>;
  /** Row of each step. */
  rows: number[];
  choice?: number;
  prompt?: number[];
  /** Legal ids of every step. */
  legal?: number[];
}

const SMALL = [0, 1, 2, 0, 1, 2];
const LARGE = [3, 4, 3, 4];
const drawn = { temperature: 1, seed: 1234n, maxTokens: 99, ignoreEos: true, logprobs: 3 };

const CASES: Case[] = [
  { name: "greedy", params: { ...drawn, temperature: 0 }, rows: [...SMALL] },
  { name: "greedy, large", params: { ...drawn, temperature: 0 }, rows: LARGE },
  { name: "temperature 1", params: drawn, rows: SMALL },
  { name: "temperature 1, large", params: drawn, rows: LARGE },
  {
    name: "temperature 0.3, another choice",
    params: { ...drawn, temperature: 0.3 },
    rows: [...SMALL, 3, 4],
    choice: 5,
  },
  { name: "temperature 2, a negative seed", params: { ...drawn, temperature: 2, seed: -7n }, rows: SMALL },
  { name: "top_k 4", params: { ...drawn, topK: 4 }, rows: SMALL },
  { name: "top_k 50, large", params: { ...drawn, topK: 50 }, rows: LARGE },
  { name: "top_p 0.5", params: { ...drawn, topP: 0.5 }, rows: [...SMALL, ...SMALL] },
  { name: "top_p 0.05", params: { ...drawn, topP: 0.05 }, rows: [...SMALL, ...SMALL] },
  { name: "top_p 0.9, large", params: { ...drawn, topP: 0.9 }, rows: LARGE },
  { name: "top_p 0.001, large", params: { ...drawn, topP: 0.001 }, rows: LARGE },
  { name: "min_p 0.2", params: { ...drawn, minP: 0.2 }, rows: SMALL },
  {
    name: "all cuts",
    params: { ...drawn, temperature: 0.7, topK: 20, topP: 0.8, minP: 0.05 },
    rows: [...SMALL, ...SMALL],
  },
  { name: "all cuts, large", params: { ...drawn, temperature: 0.7, topK: 20, topP: 0.8, minP: 0.05 }, rows: LARGE },
  {
    name: "penalties",
    params: { ...drawn, temperature: 0.5, repetitionPenalty: 1.3, frequencyPenalty: 0.4, presencePenalty: -0.3 },
    rows: [0, 0, 0, 1, 1, 1],
    prompt: [3, 5, 5, 9],
  },
  {
    name: "bias, allowed ids and bad words",
    params: {
      ...drawn,
      allowedTokenIds: [1, 5, 7, 9, 300, 516, 900],
      badWords: [[7], [5, 9], [5, 5, 1]],
      logitBias: [
        [5, 0.3],
        [9, 2],
        [5, 0.1],
        [600, 5],
      ],
    },
    rows: [...SMALL, ...SMALL],
  },
  {
    name: "min_tokens",
    params: { ...drawn, temperature: 0, minTokens: 2, minTokensMask: [5, 7, 999] },
    rows: [1, 2, 1, 2],
  },
  { name: "a grammar's mask", params: { ...drawn, topP: 0.9, logprobs: 8 }, rows: SMALL, legal: [2, 5, 8, 77, 300] },
  { name: "one legal token", params: drawn, rows: SMALL, legal: [400] },
  { name: "named log-probabilities", params: { ...drawn, logprobTokenIds: [500, 0, 8] }, rows: SMALL },
  {
    name: "a thought over its budget",
    params: { ...drawn, thinking: { startIds: [1], endIds: [44, 45], maxTokens: 2, open: true }, badWords: [[44]] },
    rows: SMALL,
  },
  { name: "nothing left", params: { ...drawn, allowedTokenIds: [4, 6] }, rows: [0], legal: [5] },
];

function vectors() {
  const cases = CASES.map(({ name, params, rows, choice = 0, prompt = [1, 2, 3], legal }) => {
    const { size } = ROWS[rows[0]!]!;
    const sampling = samplingParams(params);
    const { low, high } = randomKey(sampling.seed, choice);
    // Rows of one case have one size.
    const used = rows.filter((row) => ROWS[row]!.size === size);
    const sampler = new SequenceSampler(sampling, choice, prompt, size);
    const steps = used.map((row) => {
      const given = { row, legal: legal ?? null, ...sampler.nextEdits };
      try {
        const mask = legal === undefined ? null : tokenSet(legal, size);
        const { id, logprobs } = sampler.sample(logitsOf(ROWS[row]!), mask);
        const { logprob, rank, topIds, topLogprobs } = logprobs!;
        const rounded = (value: number) => (value === Number.NEGATIVE_INFINITY ? null : Math.fround(value));
        const values = { logprob: rounded(logprob), topLogprobs: topLogprobs.map(rounded) };
        return { ...given, expected: { id, rank, topIds, ...values } };
      } catch (error) {
        if (!(error instanceof NoLegalTokenError)) throw error;
        return { ...given, expected: "nothing" };
      }
    });
    return { name, prompt, sampling: { ...samplingOf(sampling, size), keys: [[low, high]] }, steps };
  });
  return { rows: ROWS, cases };
}

it("is what the vectors for other samplers say", () => {
  const found = vectors();
  if (process.env.UPDATE_DOCS === "1") {
    const cases = found.cases.map((each) => JSON.stringify(each)).join(",\n");
    writeFileSync(FILE, `{"rows":${JSON.stringify(found.rows)},"cases":[\n${cases}\n]}\n`);
  }
  expect(JSON.parse(readFileSync(FILE, "utf8"))).toEqual(found);
});
