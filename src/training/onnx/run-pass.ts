// Runs one pass over a batch of token matrices: the loss that the client named, the log-probabilities of the targets,
// and the gradients of the summed loss. The gradients are written to a file, for an optimizer step later.
import { createReadStream } from "node:fs";
import { linesOf } from "../../json/json.ts";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import { loadPeft } from "../../model/lora/peft.ts";
import { writeFileDurably } from "../../system/files.ts";
import type { PassResult, PassTask, TokenMatrix, UpdateResult, UpdateTask } from "../contract.ts";
import { targetLoss } from "../gradient/algorithms.ts";
import { adamW } from "../gradient/optimizer.ts";
import { type ReadMatrix, readMatrix } from "./batch.ts";
import { type PackLimits, planMicroBatches } from "./packing/pack-plan.ts";
import { parametersOf } from "./pass/lora-sites.ts";
import { type ModelHooks, saveStep } from "./run-task.ts";
import { loadOptimizerState, meanGradients, saveGradients } from "./tensor-files.ts";

export async function runPass(task: PassTask, { between, modelFor }: ModelHooks): Promise<PassResult> {
  const adapter = loadPeft(task.adapter, readModelConfig(task.baseModel));
  const params = parametersOf(adapter);
  const model = await modelFor(task, adapter.rank);
  model.setParameters(params, adapter.scale);
  const matrices = await readMatrices(task);
  const limits: PackLimits = {
    bytes: (rows, longest, keeping) => model.passBytes(rows, longest, keeping),
    maxBytes: task.activationBytes,
  };
  const gradients = new Map([...params].map(([name, values]) => [name, new Float32Array(values.length)]));
  let [loss, rows] = [0, 0];
  for (const { batch, keeping } of planMicroBatches(matrices, (index) => matrices[index]!.group, limits)) {
    const pass = await model.forward(batch, task.gradients === null ? "nothing" : keeping, between);
    rows += batch.ids.length;
    const derivatives = new Float64Array(pass.logprobs.length);
    for (const [i, { sequence, token }] of batch.reads.entries()) {
      const { losses, logprobs } = matrices[sequence]!;
      logprobs[token] = pass.logprobs[i]!;
      const part = targetLoss(task.loss, pass.logprobs[i]!, losses[token]!);
      loss += part.loss;
      derivatives[i] = part.gradient;
    }
    if (task.gradients !== null) await model.backward(pass, derivatives, gradients, between);
  }
  const values = task.gradients === null ? [] : [...gradients.values()];
  if (!Number.isFinite(loss) || !values.every((tensor) => tensor.every(Number.isFinite))) {
    throw new Error("the loss or its gradient is not finite; a weight or an advantage may be too large");
  }
  const active = activity(matrices);
  if (task.gradients !== null) saveGradients(task.gradients, gradients, active.activePositions);
  if (task.logprobs !== null) writeFileDurably(task.logprobs, matrices.map(bytesOf));
  return { loss, ...active, rows };
}

async function readMatrices({ batch, loss, logprobs }: PassTask): Promise<ReadMatrix[]> {
  const matrices: ReadMatrix[] = [];
  for await (const line of linesOf(createReadStream(batch, { encoding: "utf8" }))) {
    if (line === "") continue;
    matrices.push(readMatrix(JSON.parse(line) as TokenMatrix, matrices.length, loss, logprobs !== null));
  }
  return matrices;
}

function bytesOf({ logprobs: { buffer, byteOffset, byteLength } }: ReadMatrix): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function activity(matrices: readonly ReadMatrix[]): Pick<PassResult, "activePositions" | "byPolicyVersion"> {
  const counts = new Map<number, number>();
  let activePositions = 0;
  let known = true;
  for (const { active, policyVersions } of matrices) {
    activePositions += active.length;
    known &&= policyVersions !== null;
    for (const position of policyVersions === null ? [] : active) {
      counts.set(policyVersions![position]!, (counts.get(policyVersions![position]!) ?? 0) + 1);
    }
  }
  const sorted = [...counts].sort(([a], [b]) => a - b).map(([version, positions]) => ({ version, positions }));
  return { activePositions, byPolicyVersion: known ? sorted : null };
}

// Takes one optimizer step with the gradients that passes wrote, and saves the new adapter and optimizer state.
export async function runUpdate(task: UpdateTask): Promise<UpdateResult> {
  const adapter = loadPeft(task.adapter, readModelConfig(task.baseModel));
  const params = parametersOf(adapter);
  const gradients = meanGradients(task.gradients, params);
  const state = loadOptimizerState(task.optimizerState, params, "run");
  const update = adamW.update(params, gradients, state, task.optimizer);
  if (![...update.params.values()].every((values) => values.every(Number.isFinite))) {
    const { learningRate } = task.optimizer;
    throw new Error(`the weights are not finite after the step; the learning rate (${learningRate}) may be too large`);
  }
  saveStep(task, adapter, update.params, update.state, "run");
  return { gradNorm: update.gradNorm };
}
