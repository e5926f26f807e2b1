import { describe, expect, it } from "vitest";
import { FLYWHEEL, Graph, type Value } from "../graph.ts";
import * as ops from "../ops.ts";
import { fused } from "./fuse.ts";

const [inputs, outputs] = [8, 4];

/** A norm, a map of it, and what else uses the norm, before the map or after it. */
function normAndMap(g: Graph, op = "Int8Linear"): { normed: Value; map: () => Value } {
  const weight = g.initializer("weight", [inputs], new Float32Array(inputs));
  const values = g.initializer("values", [inputs, outputs], new Int8Array(inputs * outputs));
  const scales = g.initializer("scales", [outputs], new Float32Array(outputs));
  const shape = ["n", inputs];
  const [normed] = g.add("SimplifiedLayerNormalization", [g.input("x", shape), weight], [{ shape }], {
    epsilon: { float: 1e-5 },
  });
  const map = () => g.add(op, [normed!, values, scales], [{ shape: ["n", outputs] }], {}, FLYWHEEL)[0]!;
  return { normed: normed!, map };
}

/** Without those that name the graph's outputs. */
const nodesOf = (graph: Graph) => fused(graph).nodes.filter(({ op }) => op !== "Identity");
const opsOf = (graph: Graph) => nodesOf(graph).map(({ op }) => op);

describe("a map with rounded weights takes in the norm before it", () => {
  it.each(["Int8Linear", "Int4Linear"])("and drops its result, if nothing else needs it: %s", (op) => {
    const g = new Graph();
    g.output("y", normAndMap(g, op).map());
    expect(nodesOf(g)).toMatchObject([{ op, outputs: [{}], attributes: { input: 1 } }]);
  });

  it("and gives its result to nodes after it", () => {
    const g = new Graph();
    const { normed, map } = normAndMap(g);
    g.output("y", map());
    g.output("z", ops.exp(g, normed));
    const [first, second] = nodesOf(g);
    expect([first!.op, second!.op]).toEqual(["Int8Linear", "Exp"]);
    expect(first!.outputs[1]).toBe(normed);
  });

  it("but not, if a node before it needs the norm", () => {
    const g = new Graph();
    const { normed, map } = normAndMap(g);
    g.output("z", ops.exp(g, normed));
    g.output("y", map());
    expect(opsOf(g)).toEqual(["RmsNorm", "Exp", "Int8Linear"]);
  });

  it("and a residual only while nobody has used the norm", () => {
    const build = (between: boolean) => {
      const g = new Graph();
      const { normed, map } = normAndMap(g);
      const y = map();
      if (between) g.output("z", ops.exp(g, normed));
      g.output("sum", ops.add(g, y, g.input("residual", ["n", outputs])));
      if (!between) g.output("z", ops.exp(g, normed));
      return g;
    };
    expect(opsOf(build(false))).toEqual(["Int8Linear", "Exp"]);
    expect(opsOf(build(true))).toEqual(["Int8Linear", "Exp", "Add"]);
  });
});

describe("a map with rounded weights takes in its adapters", () => {
  const adapted = (g: Graph, y: Value, x: Value) => {
    const operands = [y, x, g.input("factors", ["f"]), null, g.input("begins", ["n"], "int64"), ops.ints(g, [outputs])];
    return g.add("LoraAdd", operands, [{ shape: y.shape }], { header: 16, place: 3, first_flag: 2 }, FLYWHEEL)[0]!;
  };

  it("and what is added after them, and keeps the norm to itself", () => {
    const g = new Graph();
    const { normed, map } = normAndMap(g);
    const residual = g.input("residual", ["n", outputs]);
    g.output("sum", ops.add(g, adapted(g, map(), normed), residual));
    const [node, ...others] = nodesOf(g);
    expect(others).toEqual([]);
    expect(node).toMatchObject({ op: "Int8Linear", outputs: [{}], attributes: { input: 1, header: 16, place: 3 } });
    expect(node!.inputs.slice(5, 8).map((value) => value?.name)).toEqual(["residual", "factors", "begins"]);
  });

  it("and gives the norm to nodes after them", () => {
    const g = new Graph();
    const { normed, map } = normAndMap(g);
    g.output("y", adapted(g, map(), normed));
    g.output("z", ops.exp(g, normed));
    const nodes = nodesOf(g);
    expect(nodes.map(({ op }) => op)).toEqual(["Int8Linear", "Exp"]);
    expect(nodes[0]!.outputs[1]).toBe(normed);
  });

  it("but not, if a node before them needs the norm from the map", () => {
    const g = new Graph();
    const { normed, map } = normAndMap(g);
    const y = map();
    g.output("z", ops.exp(g, normed));
    g.output("y", adapted(g, y, normed));
    expect(opsOf(g)).toEqual(["Int8Linear", "Exp", "LoraAdd"]);
  });

  it("nor if they are those of other rows, or the map's own result is needed", () => {
    const g = new Graph();
    g.output("y", adapted(g, normAndMap(g).map(), g.input("others", ["n", inputs])));
    expect(opsOf(g)).toEqual(["Int8Linear", "LoraAdd"]);
    const h = new Graph();
    const { normed, map } = normAndMap(h);
    const y = map();
    h.output("y", adapted(h, y, normed));
    h.output("before", ops.exp(h, y));
    expect(opsOf(h)).toEqual(["Int8Linear", "LoraAdd", "Exp"]);
  });
});

describe("attention", () => {
  const attend = (g: Graph, x: Value) =>
    g.add("PagedAttention", [x, x, null, null], [{ shape: ["n", 1, 6] }], {}, FLYWHEEL)[0]!;

  it("reads rows of any shape", () => {
    const g = new Graph();
    const x = g.input("x", ["n", 1, 18]);
    g.output("y", attend(g, ops.reshape(g, x, ["n", 3, 1, 6])));
    const nodes = nodesOf(g);
    expect(nodes.map(({ op }) => op)).toEqual(["PagedAttention"]);
    expect(nodes[0]!.inputs).toEqual([x, x, null, null]);
  });

  it("leaves a shape that others need", () => {
    const g = new Graph();
    const shaped = ops.reshape(g, g.input("x", ["n", 1, 18]), ["n", 3, 1, 6]);
    g.output("y", attend(g, shaped));
    g.output("z", ops.exp(g, shaped));
    expect(opsOf(g)).toEqual(["Reshape", "PagedAttention", "Exp"]);
  });
});
