// Copies a part of a traced graph into another graph: the nodes that compute some values from others. Nodes that
// compute the given values are left out. Cutting the trace of a computation and its gradient at the right values makes
// pieces that run one after the other. Values that are not given are computed again.

import type { Graph, Initializer, Node, Value } from "./graph.ts";

/**
 * Returns the copies of `results` in `target`. `given`: values of the source and their replacements in the target. Weights
 * are copied under their names. Constants are shared with the target's own.
 */
export function graft(
  target: Graph,
  source: Graph,
  results: readonly Value[],
  given: ReadonlyMap<Value, Value>,
): Value[] {
  const { nodes, leaves } = ancestry(results, given);
  const held = new Map(source.initializers.map((initializer) => [initializer.value, initializer]));
  const copies = new Map(given);
  for (const leaf of leaves) if (!given.has(leaf)) copies.set(leaf, copyData(target, leaf, held.get(leaf)));
  for (const node of nodes) {
    const inputs = node.inputs.map((input) => (input === null ? null : copies.get(input)!));
    const outputs = target.add(node.op, inputs, node.outputs, node.attributes, node.domain);
    for (const [i, output] of node.outputs.entries()) if (!copies.has(output)) copies.set(output, outputs[i]!);
  }
  return results.map((result) => copies.get(result)!);
}

/** Which of `stops` the results are computed from. Does not look beyond them. */
export function needed(results: readonly Value[], stops: Iterable<Value>): Set<Value> {
  const ends = new Map([...stops].map((stop) => [stop, stop]));
  const { leaves } = ancestry(results, ends);
  return new Set([...leaves].filter((leaf) => ends.has(leaf)));
}

function copyData(target: Graph, value: Value, held: Initializer | undefined): Value {
  if (held === undefined) throw new Error(`the value ${value.name} is needed and not given`);
  const shape = value.shape as readonly number[];
  return held.constant ? target.constant(held.data, shape) : target.initializer(value.name, shape, held.data);
}

/** The nodes that compute the results, in running order, and the values where the search ends. */
function ancestry(
  results: readonly Value[],
  stops: ReadonlyMap<Value, unknown>,
): { nodes: Set<Node>; leaves: Set<Value> } {
  const nodes = new Set<Node>();
  const leaves = new Set<Value>();
  // Depth first with an explicit stack, because traces are tens of thousands of nodes deep.
  const stack = [...results].reverse();
  while (stack.length > 0) {
    const value = stack.at(-1)!;
    if (value.node === null || stops.has(value)) leaves.add(value);
    else if (!nodes.has(value.node)) {
      const missing = value.node.inputs.filter((input) => input !== null && !settled(input));
      if (missing.length > 0) {
        stack.push(...(missing as Value[]));
        continue;
      }
      nodes.add(value.node);
    }
    stack.pop();
  }
  return { nodes, leaves };

  function settled(value: Value): boolean {
    return leaves.has(value) || (value.node !== null && !stops.has(value) && nodes.has(value.node));
  }
}
