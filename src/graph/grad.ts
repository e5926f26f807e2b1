// Reverse-mode differentiation of a traced graph. The gradient is more nodes of the same graph. `gradients` walks the
// trace backwards from the seeds; grad-rules.ts, or a definition by Graph.defineGradient, says how each node passes a
// gradient on. Nothing is computed here, and nodes that do not lead to a target get no gradient.

import { rules } from "./grad-rules.ts";
import type { Graph, Node, Value } from "./graph.ts";
import { add, mul, scalar } from "./ops.ts";

/**
 * Returns d(sum of seed * value) / d(target) for every target. `seeds` maps values to the gradients that reach them from
 * outside. A target may itself be a seed. The new nodes go to `to`, which may be a branch of the traced graph.
 */
export function gradients(
  g: Graph,
  seeds: ReadonlyMap<Value, Value>,
  targets: readonly Value[],
  to: Graph = g,
): Value[] {
  const trace = [...g.nodes];
  const moving = dependents(g, trace, targets);
  const arrived = new Map(seeds);
  const arrive = (value: Value, gradient: Value | null) => {
    if (gradient === null || !moving.has(value)) return;
    const before = arrived.get(value);
    arrived.set(value, before === undefined ? gradient : add(to, before, gradient));
  };
  for (const node of trace.reverse()) {
    if (!node.outputs.some((output) => arrived.has(output) && moving.has(output))) continue;
    const defined = g.pulls.get(node.outputs[0]!);
    if (!(defined?.inputs ?? node.inputs).some((input) => input !== null && moving.has(input))) continue;
    if (defined !== undefined) {
      const passed = defined.pull(to, arrived.get(node.outputs[0]!)!);
      for (const [i, input] of defined.inputs.entries()) arrive(input, passed[i]!);
      continue;
    }
    const rule = rules[node.op];
    if (rule === undefined) throw new Error(`no gradient is known for the operation ${node.op}`);
    const passed = rule(to, node, gradientsOf(to, node, arrived));
    for (const [i, input] of node.inputs.entries()) {
      if (input === null || !moving.has(input)) continue;
      if (passed[i] === undefined) throw new Error(`no gradient is known for input ${i} of the operation ${node.op}`);
      arrive(input, passed[i]());
    }
  }
  return targets.map((target) => {
    const gradient = arrived.get(target);
    if (gradient === undefined) throw new Error(`nothing that was asked for depends on ${target.name}`);
    return gradient;
  });
}

/** One gradient per output; zeros for an unused output. */
function gradientsOf(g: Graph, node: Node, arrived: ReadonlyMap<Value, Value>): Value[] {
  return node.outputs.map((output) => arrived.get(output) ?? mul(g, output, scalar(g, 0)));
}

/** The targets and every value computed from them. */
function dependents(g: Graph, trace: readonly Node[], targets: readonly Value[]): Set<Value> {
  const moving = new Set(targets);
  for (const node of trace) {
    const inputs = g.pulls.get(node.outputs[0]!)?.inputs ?? node.inputs;
    if (inputs.some((input) => input !== null && moving.has(input))) for (const out of node.outputs) moving.add(out);
  }
  return moving;
}
