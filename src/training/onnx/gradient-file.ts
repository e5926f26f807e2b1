// The gradients of a pass on disk: a safetensors file with the gradients of the summed loss, and the number of active
// positions that they belong to.

import { SafetensorsFile } from "../../model/checkpoint/safetensors.ts";
import { writeSafetensors } from "../../model/checkpoint/safetensors-writer.ts";
import type { NamedTensors } from "../gradient/optimizer.ts";

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
