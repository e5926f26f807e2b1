// One gradient step: runs its micro-batches forward, computes the loss (gradient/loss.ts), runs them backward, and adds
// up gradients and metrics. The optimizer comes after.

import type { Objective } from "../contract.ts";
import { clipRange, klMean, klNeeds, knownLogprobs, type LossInputs, policyLoss } from "../gradient/loss.ts";
import { type StepTokens, samplerDifference, stepDiagnostics } from "../gradient/loss-diagnostics.ts";
import type { NamedTensors } from "../gradient/optimizer.ts";
import { type TokenNumbers, TokenRows } from "../gradient/token-numbers.ts";
import type { TaskSequence } from "./batch.ts";
import type { MicroBatch } from "./packing/micro-batch.ts";
import { type PackLimits, planMicroBatches } from "./packing/pack-plan.ts";
import type { Between, ForwardPass, TrainableModel } from "./pass/trainable-model.ts";

export interface StepResult {
  gradients: NamedTensors;
  metrics: Record<string, number>;
  /** Metrics of how far the sampler is from the trainer, if the model is set to the weights that sampled. */
  samplerDifference: Record<string, number>;
  /** What was computed for every trained token. */
  tokens: TokenRows;
  /** Tokens that went forward and backward. */
  rows: number;
}

export interface PassOptions {
  model: TrainableModel;
  sequences: readonly TaskSequence[];
  /** Memory limit of one micro-batch. */
  maxBytes: number;
  /** Called between layers; throws to end the task. */
  between: Between;
}

/** `params`: the parameters that the model is set to. The gradients have their shapes. */
export async function gradientStep(
  options: PassOptions,
  objective: Objective,
  params: NamedTensors,
): Promise<StepResult> {
  const { model, sequences, maxBytes, between } = options;
  const batches = planMicroBatches(sequences, groupsOf(sequences), limitsOf(model, maxBytes));
  const trainedTokens = sequences.reduce((sum, { predicting }) => sum + predicting.length, 0);
  const gradients = new Map([...params].map(([name, values]) => [name, new Float32Array(values.length)]));
  const bySequence = new Map(sequences.map((sequence) => [sequence.index, sequence]));
  const tokens: Record<keyof StepTokens, number[]> = {
    logprobs: [],
    oldLogprobs: [],
    ratios: [],
    advantages: [],
    entropies: [],
    klToReference: [],
  };
  const sampler: number[] = [];
  const rows = new TokenRows(sequences);
  const step = { tokens: trainedTokens, klMean: batches.length > 1 ? await stepKlMean(options, objective) : null };
  let loss = 0;
  let computed = 0;
  for (const { batch, keeping } of batches) {
    computed += batch.ids.length;
    const pass = await model.forward(batch, keeping, between);
    const part = objective.kind === "policy" ? policyPart(pass, batch, bySequence, objective, step) : null;
    const dLogprobs = part?.gradient ?? new Float64Array(pass.logprobs.length).fill(-1 / trainedTokens);
    loss += part?.loss ?? -sum(pass.logprobs) / trainedTokens;
    for (const entropy of pass.entropies) tokens.entropies.push(entropy);
    for (const key of part ? (Object.keys(part.tokens) as (keyof typeof part.tokens)[]) : []) {
      for (const value of part!.tokens[key]) tokens[key].push(value);
    }
    if (part) for (const { sequence, token } of batch.reads) sampler.push(bySequence.get(sequence)!.sampler[token]!);
    for (const [i, { sequence, token }] of batch.reads.entries()) {
      rows.set(sequence, token, {
        ...{ new_logprob: pass.logprobs[i]!, entropy: pass.entropies[i]!, gradient: dLogprobs[i]! },
        ...part?.numbers(i),
      });
    }
    await model.backward(pass, dLogprobs, gradients, between);
  }
  const counts = {
    num_trainable_tokens: trainedTokens,
    num_tokens: sequences.reduce((total, { ids }) => total + ids.length, 0),
    num_datums: sequences.length,
  };
  const metrics =
    objective.kind === "policy"
      ? { loss, policy_loss: loss, ...stepDiagnostics(tokens, clipRange(objective.loss)), ...counts }
      : { loss, ...counts };
  const difference = samplerDifference(tokens.logprobs, sampler);
  return { gradients, metrics, samplerDifference: difference, tokens: rows, rows: computed };
}

/** Log-probabilities of every trained token under the model's current parameters, by sequence. */
export async function logprobsOf({
  model,
  sequences,
  maxBytes,
  between,
}: PassOptions): Promise<Map<number, Float64Array>> {
  const batches = planMicroBatches(sequences, groupsOf(sequences), limitsOf(model, maxBytes));
  const result = new Map(sequences.map(({ index, predicting }) => [index, new Float64Array(predicting.length)]));
  for (const { batch } of batches) {
    const { logprobs } = await model.forward(batch, "nothing", between);
    for (const [i, { sequence, token }] of batch.reads.entries()) result.get(sequence)![token] = logprobs[i]!;
  }
  return result;
}

/** What the KL penalty is centred on, when no micro-batch has the whole step. It may need a forward pass over the step. */
async function stepKlMean(options: PassOptions, objective: Objective): Promise<number | null> {
  if (objective.kind !== "policy") return null;
  const { sequences } = options;
  const joined = (of: (sequence: TaskSequence) => ArrayLike<number>) =>
    Float64Array.from(sequences.flatMap((sequence) => Array.from(of(sequence))));
  const inputs = {
    oldLogprobs: joined(({ precalculated, sampler }) => precalculated ?? sampler),
    referenceLogprobs: sequences[0]?.reference ? joined(({ reference }) => reference!) : null,
  };
  const needs = klNeeds(inputs, objective.loss);
  if (needs === "nothing") return null;
  const current = needs === "current" ? await logprobsOf(options) : null;
  const logprobs = current === null ? inputs.oldLogprobs : joined(({ index }) => current.get(index)!);
  return klMean({ ...inputs, logprobs }, objective.loss);
}

function policyPart(
  pass: ForwardPass,
  { reads }: MicroBatch,
  sequences: ReadonlyMap<number, TaskSequence>,
  { loss }: Extract<Objective, { kind: "policy" }>,
  step: { tokens: number; klMean: number | null },
) {
  const each = (value: (sequence: TaskSequence, token: number) => number) =>
    Float64Array.from(reads, ({ sequence, token }) => value(sequences.get(sequence)!, token));
  const starts = reads.flatMap(({ sequence }, i) => (i === 0 || sequence !== reads[i - 1]!.sequence ? [i] : []));
  const some = reads.length > 0 ? sequences.get(reads[0]!.sequence)! : null;
  const inputs: LossInputs = {
    logprobs: Float64Array.from(pass.logprobs),
    oldLogprobs: each(({ precalculated, sampler }, token) => (precalculated ?? sampler)[token]!),
    advantages: each(({ advantage }) => advantage),
    weights: each(({ weight }) => weight),
    sequenceStarts: [...starts, reads.length],
    samplerLogprobs: some?.precalculated ? each(({ sampler }, token) => sampler[token]!) : null,
    referenceLogprobs: some?.reference ? each(({ reference }, token) => reference![token]!) : null,
    klMean: step.klMean,
    stepTokens: step.tokens,
  };
  const result = policyLoss(inputs, loss);
  const { low, high } = clipRange(loss);
  return {
    /** Of the token that is read as the i-th. */
    numbers: (i: number): Partial<TokenNumbers> => {
      const ratio = result.ratio[i]!;
      const clipped = ratio < low ? -1 : ratio > high ? 1 : 0;
      const signal = { advantage: result.advantage[i]!, weight: inputs.weights[i]! };
      return { ratio, clipped, ...signal, reference_kl: result.klToReference?.[i] ?? Number.NaN };
    },
    loss: result.loss,
    gradient: result.gradient,
    tokens: {
      logprobs: inputs.logprobs,
      oldLogprobs: knownLogprobs(inputs),
      ratios: result.ratio,
      advantages: inputs.advantages,
      klToReference: result.klToReference ?? new Float64Array(0),
    },
  };
}

function groupsOf(sequences: readonly TaskSequence[]): (index: number) => number {
  const groups = new Map(sequences.map(({ index, group }) => [index, group]));
  return (index) => groups.get(index)!;
}

function limitsOf(model: TrainableModel, maxBytes: number): PackLimits {
  return { bytes: (rows, longest, keeping) => model.passBytes(rows, longest, keeping), maxBytes };
}

function sum(values: Float32Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
