// Rewrites a graph for the native module: operations that it has too become its own, and those around a map with rounded
// weights or its adapters become part of it, so that a row passes through them while it is in the processor's cache. A fused map gives
// the same bits as its parts, so it does not matter that parts stay apart where something else needs their result.

import { type Attribute, FLYWHEEL, Graph, type Node, type Value } from "../graph.ts";

/** What a map does to its input first: LinearInput in native/kernels.h. */
const INPUT = { plain: 0, rmsNorm: 1, gatedSilu: 2, gatedGelu: 3 };

/** Places of a map's inputs. The first of them are those of linear.ts. */
const NORM_WEIGHT = 4;
const ADAPTERS = 6;

/** Operations that can add a value of the same shape to their result, and the place of that input. */
const RESIDUAL: Readonly<Record<string, number>> = { Int8Linear: 5, Int4Linear: 5, LoraAdd: 3 };

/** A new graph with the same inputs, outputs and initializers. */
export function fused(graph: Graph): Graph {
  return rewritten(graph, countUses(graph, new Map()));
}

function rewritten(graph: Graph, uses: ReadonlyMap<Value, number>): Graph {
  const result = new Graph();
  result.inputs.push(...graph.inputs);
  result.outputs.push(...graph.outputs);
  result.initializers.push(...graph.initializers);
  result.nodes.push(...new Rewriter(uses).all(graph.nodes));
  return result;
}

class Rewriter {
  readonly #uses: ReadonlyMap<Value, number>;
  /** Nodes so far, in order. Those that became part of another are taken out again. */
  readonly #nodes = new Set<Node>();
  readonly #makers = new Map<Value, Node>();
  /** Values that a node so far uses. */
  readonly #used = new Set<Value>();

  constructor(uses: ReadonlyMap<Value, number>) {
    this.#uses = uses;
  }

  all(nodes: readonly Node[]): Node[] {
    for (const node of nodes) {
      const next = this.#folded(this.#translated(node));
      this.#nodes.add(next);
      for (const value of valuesOf(next)) this.#used.add(value);
      for (const output of next.outputs) this.#makers.set(output, next);
    }
    return [...this.#nodes];
  }

  /** The node as one of the native module, if it has it. */
  #translated(node: Node): Node {
    const { op, inputs, outputs, attributes } = node;
    if (op === "SimplifiedLayerNormalization" && outputs.length === 1) {
      return own("RmsNorm", inputs, outputs, { epsilon: attributes.epsilon! });
    }
    if (op === "RotaryEmbedding") {
      const [x, , cos, sin] = inputs;
      return own("Rotate", [x!, cos!, sin!], outputs, {});
    }
    if (op === "Mul") return this.#gated(node) ?? node;
    const branches = Object.entries(attributes).filter(([, value]) => value instanceof Graph);
    if (branches.length === 0) return node;
    const rewrittenBranches = branches.map(([name, branch]) => [name, rewritten(branch as Graph, this.#uses)]);
    return { ...node, attributes: { ...attributes, ...Object.fromEntries(rewrittenBranches) } };
  }

  /** activation(gate) * up */
  #gated({ inputs: [activated, up], outputs }: Node): Node | null {
    const maker = this.#partOf(activated!);
    const activation = maker === null ? null : activationOf(maker);
    if (activation === null || !sameShape(activated!, up!)) return null;
    this.#nodes.delete(maker!);
    const gate = maker!.inputs[0]!;
    const halves = this.#halves(gate, up!);
    if (halves !== null) this.#nodes.delete(halves);
    return own("Gated", halves === null ? [gate, up!] : [halves.inputs[0]!], outputs, { activation });
  }

  /** The node with those before it that it takes in. */
  #folded(node: Node): Node {
    if (isRoundedMap(node)) return this.#withInput(node);
    if (node.op === "LoraAdd") return this.#withMap(node);
    if (node.op === "PagedAttention") return this.#withoutReshape(node);
    if (node.op === "Add" && node.domain === "") return this.#withResidual(node);
    return node;
  }

  /** The map that makes its input itself. If later nodes use that too, such as adapters, the map is where they get it from. */
  #withInput(map: Node): Node {
    const value = map.inputs[0]!;
    const maker = this.#used.has(value) ? undefined : this.#makers.get(value);
    if (maker?.domain !== FLYWHEEL) return map;
    const outputs = this.#uses.get(value) === 1 ? map.outputs : [...map.outputs, value];
    if (maker.op === "RmsNorm") {
      const [x, weight] = maker.inputs;
      this.#nodes.delete(maker);
      const attributes = { ...map.attributes, input: INPUT.rmsNorm, epsilon: maker.attributes.epsilon! };
      return { ...map, inputs: place(map.inputs.with(0, x!), NORM_WEIGHT, weight!), outputs, attributes };
    }
    if (maker.op !== "Gated" || maker.inputs.length > 1) return map;
    this.#nodes.delete(maker);
    const input = maker.attributes.activation === 0 ? INPUT.gatedSilu : INPUT.gatedGelu;
    const attributes = { ...map.attributes, input };
    return { ...map, inputs: map.inputs.with(0, maker.inputs[0]!), outputs, attributes };
  }

  /** The map that adds its adapters itself, if they work on the rows that it multiplies. */
  #withMap(adapters: Node): Node {
    const [y, x, factors, residual, begins, parts] = adapters.inputs;
    const map = this.#partOf(y!);
    if (map === null || !isRoundedMap(map) || map.inputs[RESIDUAL[map.op]!] || residual) return adapters;
    const [, kept] = map.outputs;
    if (x !== (kept ?? map.inputs[0]) || (kept === undefined && map.attributes.input)) return adapters;
    // The map moves to the place of its adapters, which may be too late for others that need these rows.
    const others = kept !== undefined && this.#uses.get(kept)! > 2;
    if (others && this.#used.has(kept)) return adapters;
    this.#nodes.delete(map);
    const inputs = [factors!, begins!, parts!].reduce((all, value, i) => place(all, ADAPTERS + i, value), map.inputs);
    const outputs = others ? [...adapters.outputs, kept] : adapters.outputs;
    return { ...map, inputs, outputs, attributes: { ...map.attributes, ...adapters.attributes } };
  }

  /** Attention takes rows of any shape. */
  #withoutReshape(attention: Node): Node {
    const inputs = attention.inputs.map((value) => {
      const maker = value === null ? undefined : this.#makers.get(value);
      if (maker?.op !== "Reshape" || maker.inputs[0]!.shape[0] !== value!.shape[0]) return value;
      if (this.#uses.get(value!) !== attention.inputs.filter((input) => input === value).length) return value;
      this.#nodes.delete(maker);
      return maker.inputs[0]!;
    });
    return { ...attention, inputs };
  }

  /** The node that split one value into these two halves of its last dimension, if nothing else uses them. */
  #halves(gate: Value, up: Value): Node | null {
    const split = this.#partOf(gate);
    if (split?.op !== "Split" || split !== this.#partOf(up) || !sameShape(gate, up)) return null;
    const [first, second] = split.outputs;
    const last = split.inputs[0]!.shape.length - 1;
    return first === gate && second === up && split.attributes.axis === last ? split : null;
  }

  #withResidual(sum: Node): Node {
    for (const [i, term] of sum.inputs.entries()) {
      const map = this.#partOf(term!);
      const other = sum.inputs[1 - i]!;
      const at = map?.domain === FLYWHEEL ? RESIDUAL[map.op] : undefined;
      if (map === null || at === undefined || map.inputs[at] || !sameShape(term!, other)) continue;
      // The map moves to the place of the sum, which may be too late for its second output.
      if (map.outputs.slice(1).some((output) => this.#used.has(output))) continue;
      this.#nodes.delete(map);
      const outputs = [...sum.outputs, ...map.outputs.slice(1)];
      return { ...map, inputs: place(map.inputs, at, other), outputs };
    }
    return sum;
  }

  /** The node in this graph that made a value which only one other node uses. */
  #partOf(value: Value): Node | null {
    return this.#uses.get(value) === 1 ? (this.#makers.get(value) ?? null) : null;
  }
}

/** Whether it is a map with rounded weights, which the module holds. */
export function isRoundedMap({ op, domain }: Node): boolean {
  return domain === FLYWHEEL && (op === "Int8Linear" || op === "Int4Linear");
}

function own(
  op: string,
  inputs: Node["inputs"],
  outputs: Node["outputs"],
  attributes: Record<string, Attribute>,
): Node {
  return { op, domain: FLYWHEEL, inputs, outputs, attributes };
}

/** 0 = silu, 1 = gelu; null = another operation. */
function activationOf({ op, attributes }: Node): number | null {
  if (op === "QuickGelu" && (attributes.alpha as { float: number }).float === 1) return 0;
  return op === "Gelu" && attributes.approximate === "tanh" ? 1 : null;
}

function place(inputs: Node["inputs"], at: number, value: Value): Node["inputs"] {
  return Array.from({ length: Math.max(inputs.length, at + 1) }, (_, i) => (i === at ? value : (inputs[i] ?? null)));
}

function sameShape(a: Value, b: Value): boolean {
  return a.shape.join() === b.shape.join();
}

/** What a node uses, in its branches too. */
function valuesOf({ inputs, attributes }: Node): Value[] {
  const branches = Object.values(attributes).filter((value) => value instanceof Graph);
  const inside = branches.flatMap((branch) => [...countUses(branch, new Map()).keys()]);
  return [...inputs.filter((value) => value !== null), ...inside];
}

/** How often values are used, as inputs of nodes and as outputs of graphs. */
function countUses(graph: Graph, uses: Map<Value, number>): Map<Value, number> {
  const use = (value: Value | null) => value !== null && uses.set(value, (uses.get(value) ?? 0) + 1);
  graph.outputs.forEach(use);
  for (const { inputs, attributes } of graph.nodes) {
    inputs.forEach(use);
    for (const value of Object.values(attributes)) if (value instanceof Graph) countUses(value, uses);
  }
  return uses;
}
