// Reads the sequences of a task, with what the loss needs for every trained token.

import { createReadStream } from "node:fs";
import { linesOf } from "../../json/json.ts";
import type { BatchSequence } from "../contract.ts";
import type { RowSequence } from "./packing/micro-batch.ts";

export interface TaskSequence extends RowSequence {
  group: number;
  advantage: number;
  weight: number;
  /** One log-probability per trained token, as the sampler reported it, within [-9999, 0]; NaN = unknown. */
  sampler: Float64Array;
  /** Recomputed before the first step, when the task asks for it. */
  precalculated: Float64Array | null;
  /** Log-probabilities under the reference policy, when there is one. */
  reference: Float64Array | null;
}

/** The smallest log-probability on the wire. */
const LEAST = -9999;

export async function readBatch(path: string): Promise<TaskSequence[]> {
  const sequences: TaskSequence[] = [];
  for await (const line of linesOf(createReadStream(path, { encoding: "utf8" }))) {
    if (line !== "") sequences.push(taskSequence(JSON.parse(line) as BatchSequence, sequences.length));
  }
  return sequences;
}

function taskSequence({ ids, mask, oldLogprobs, ...signal }: BatchSequence, index: number): TaskSequence {
  // position p predicts token p + 1
  const trained = mask.flatMap((bit, i) => (bit === 1 && i > 0 ? [i] : []));
  return {
    index,
    ids: Int32Array.from(ids),
    predicting: Int32Array.from(trained, (i) => i - 1),
    targets: Int32Array.from(trained, (i) => ids[i]!),
    sampler: Float64Array.from(trained, (i) => Math.min(Math.max(oldLogprobs[i] ?? Number.NaN, LEAST), 0)),
    precalculated: null,
    reference: null,
    ...signal,
  };
}
