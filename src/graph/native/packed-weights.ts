// Packs the weights of the graph's int8 and int4 maps into the native module's memory, where its kernels read them. The
// runtime never sees them, so there is no second copy.

import { Graph, type Initializer, type Node, type Value } from "../graph.ts";
import type { PackedWeights } from "../onnx.ts";
import { isRoundedMap } from "./fuse.ts";
import type { NativeModule } from "./native-module.ts";

export function packWeights(native: NativeModule, graph: Graph): PackedWeights {
  const held = new Map(graph.initializers.map((initializer) => [initializer.value, initializer]));
  const packed = new Map<Node, number>();
  try {
    for (const node of mapsOf(graph)) packed.set(node, pack(native, node, held));
    return packed;
  } catch (error) {
    for (const handle of packed.values()) native.releaseWeights(handle);
    throw error;
  }
}

function pack(native: NativeModule, { op, inputs, outputs }: Node, held: ReadonlyMap<Value, Initializer>): number {
  const dataOf = (value: Value) => held.get(value)!.data;
  const [, weights, scales, bias] = inputs;
  const values = dataOf(weights!);
  const factors = dataOf(scales!) as Float32Array;
  const addend = bias == null ? null : (dataOf(bias) as Float32Array);
  const out = outputs[0]!.shape.at(-1) as number;
  if (op === "Int8Linear") return native.packInt8(values as Int8Array, factors, addend, values.length / out, out);
  return native.packInt4(values as Uint8Array, factors, addend, (2 * values.length) / out, out);
}

/** Also those in branches. */
function mapsOf(graph: Graph): Node[] {
  return graph.nodes.flatMap((node) => {
    if (isRoundedMap(node)) return [node];
    return Object.values(node.attributes).flatMap((value) => (value instanceof Graph ? mapsOf(value) : []));
  });
}
