// Stores the state of the optimizer between jobs, in a safetensors file beside the adapter: both moments of every
// parameter, the number of steps, and the kind of objective.

import { SafetensorsFile } from "../../model/checkpoint/safetensors.ts";
import { writeSafetensors } from "../../model/checkpoint/safetensors-writer.ts";
import type { Objective } from "../contract.ts";
import { type AdamState, adamW, type NamedTensors } from "../gradient/optimizer.ts";

/** What the state belongs to: the objective of jobs, or the operations of a run. */
export type OptimizerKind = Objective["kind"] | "run";

const [FIRST, SECOND] = ["first.", "second."];

export function saveOptimizerState(path: string, state: AdamState, kind: OptimizerKind): void {
  const tensors = [state.first, state.second].flatMap((moments, i) =>
    [...moments].map(([name, values]) => ({
      name: (i === 0 ? FIRST : SECOND) + name,
      shape: [values.length],
      values,
      dtype: "F32" as const,
    })),
  );
  writeSafetensors(path, tensors, { step: String(state.step), objective: kind });
}

/** The stored state, or a new one when there is none or it belongs to another objective or other parameters. */
export function loadOptimizerState(path: string | null, params: NamedTensors, kind: OptimizerKind): AdamState {
  const fresh = adamW.init(params);
  if (path === null) return fresh;
  const file = SafetensorsFile.open(path);
  try {
    const step = Number(file.metadata.step);
    if (file.metadata.objective !== kind || !Number.isSafeInteger(step)) return fresh;
    const moments = (prefix: string) =>
      new Map([...params].map(([name, values]) => [name, fitting(file, prefix + name, values.length)]));
    const [first, second] = [moments(FIRST), moments(SECOND)];
    const complete = [...first.values(), ...second.values()].every((values) => values !== null);
    return complete ? { step, first: first as NamedTensors, second: second as NamedTensors } : fresh;
  } finally {
    file.close();
  }
}

function fitting(file: SafetensorsFile, name: string, size: number): Float32Array | null {
  return file.tensors.get(name)?.elements === size ? file.read(name) : null;
}
