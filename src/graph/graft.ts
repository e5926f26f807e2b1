// Copies a part of a traced graph into another graph: everything that computes some values from some others. What lies
// behind the given values is left out. With a trace that holds a computation and its gradient, cuts at the right values
// make the pieces that run one after the other, and whatever is not given is computed again.

import type { Graph, Initializer, Node, Value } from "./graph.ts";

/**
 * Returns the copies of `results` in `target`. `given`: values of the source, and what stands for them in the target.
 * Weights come along under their names; constants are shared with the target's own.
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

/** Which of `stops` the results are computed from, looking no further behind them. */
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

/** The nodes behind the results in the order they run, and the values where looking back ends. */
function ancestry(
  results: readonly Value[],
  stops: ReadonlyMap<Value, unknown>,
): { nodes: Set<Node>; leaves: Set<Value> } {
  const nodes = new Set<Node>();
  const leaves = new Set<Value>();
  // depth first with an explicit stack: traces are tens of thousands of nodes deep
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
