// Packs the weights of the graph's int8 maps into the native module's memory, where its kernel reads them. The runtime
// never sees them, so there is no second copy.

import { FLYWHEEL, Graph, type Initializer, type Node, type Value } from "../graph.ts";
import type { PackedWeights } from "../onnx.ts";
import type { NativeModule } from "./native-module.ts";

export function packWeights(native: NativeModule, graph: Graph): PackedWeights {
  const held = new Map(graph.initializers.map((initializer) => [initializer.value, initializer]));
  const packed = new Map<Node, number>();
  try {
    for (const node of int8Nodes(graph)) packed.set(node, pack(native, node, held));
    return packed;
  } catch (error) {
    for (const handle of packed.values()) native.releaseInt8(handle);
    throw error;
  }
}

function pack(native: NativeModule, { inputs }: Node, held: ReadonlyMap<Value, Initializer>): number {
  const dataOf = (value: Value) => held.get(value)!.data;
  const [, weights, scales, bias] = inputs;
  const [rows, columns] = weights!.shape as readonly number[];
  return native.packInt8(
    dataOf(weights!) as Int8Array,
    dataOf(scales!) as Float32Array,
    bias == null ? null : (dataOf(bias) as Float32Array),
    rows!,
    columns!,
  );
}

/** Also those in branches. */
function int8Nodes(graph: Graph): Node[] {
  return graph.nodes.flatMap((node) => {
    if (node.domain === FLYWHEEL && node.op === "Int8Linear") return [node];
    return Object.values(node.attributes).flatMap((value) => (value instanceof Graph ? int8Nodes(value) : []));
  });
}
