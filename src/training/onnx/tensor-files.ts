// Files of tensors beside an adapter: gradients, and the state of the optimizer.
import { SafetensorsFile } from "../../model/checkpoint/safetensors.ts";
import { writeSafetensors } from "../../model/checkpoint/safetensors-writer.ts";
import type { Objective } from "../contract.ts";
import { type AdamState, adamW, type NamedTensors } from "../gradient/optimizer.ts";

// The gradients of a pass on disk: a safetensors file with the gradients of the summed loss, and the number of active
// positions that they belong to.

export function saveGradients(path: string, gradients: NamedTensors, activePositions: number): void {
  const tensors = [...gradients].map(([name, values]) => ({
    ...{ name, values, shape: [values.length], dtype: "F32" as const },
  }));
  writeSafetensors(path, tensors, { active_positions: String(activePositions) });
}

/** The sum of all files, divided by the active positions of all: as if one pass had read all batches. */
export function meanGradients(paths: readonly string[], params: NamedTensors): NamedTensors {
  const gradients = new Map([...params].map(([name, values]) => [name, new Float32Array(values.length)]));
  let activePositions = 0;
  for (const path of paths) {
    const file = SafetensorsFile.open(path);
    try {
      activePositions += Number(file.metadata.active_positions);
      for (const [name, sum] of gradients) {
        const values = file.read(name);
        for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + values[i]!;
      }
    } finally {
      file.close();
    }
  }
  for (const sum of gradients.values()) for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! / activePositions;
  return gradients;
}

// Stores the state of the optimizer between jobs, in a safetensors file beside the adapter: both moments of every
// parameter, the number of steps, and the kind of objective.

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
