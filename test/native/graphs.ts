// Small graphs for tests of the native module.

import { Graph, type Value } from "../../src/graph/graph.ts";
import { NativeSession } from "../../src/graph/native/native-session.ts";
import { emitOnnx } from "../../src/graph/onnx.ts";
import type { Tensor } from "../../src/graph/onnx-runtime.ts";

/** `build`: the outputs by name. */
export function graphOf(build: (g: Graph) => Record<string, Value>): Graph {
  const g = new Graph();
  for (const [name, value] of Object.entries(build(g))) g.output(name, value);
  return g;
}

export function sessionOf(build: (g: Graph) => Record<string, Value>, threads = 1): Promise<NativeSession> {
  return NativeSession.create(emitOnnx(graphOf(build)), { threads });
}

/** Numbers between -1 and 1 that are the same in each run. */
export function noise(length: number, seed = 1): Float32Array {
  return Float32Array.from({ length }, (_, i) => Math.sin((i + 1) * 12.9898 * seed));
}

export function asNumbers(tensor: Tensor | undefined): number[] {
  return Array.from(tensor!.data as Float32Array);
}
