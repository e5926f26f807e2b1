import { describe, expect, it } from "vitest";
import { FLYWHEEL, Graph, type Value } from "../graph.ts";
import * as ops from "../ops.ts";
import { fused } from "./fuse.ts";

const [inputs, outputs] = [8, 4];

/** A norm, an int8 map of it, and what else uses the norm, before the map or after it. */
function normAndMap(g: Graph): { normed: Value; map: () => Value } {
  const weight = g.initializer("weight", [inputs], new Float32Array(inputs));
  const values = g.initializer("values", [inputs, outputs], new Int8Array(inputs * outputs));
  const scales = g.initializer("scales", [outputs], new Float32Array(outputs));
  const shape = ["n", inputs];
  const [normed] = g.add("SimplifiedLayerNormalization", [g.input("x", shape), weight], [{ shape }], {
    epsilon: { float: 1e-5 },
  });
  const map = () => g.add("Int8Linear", [normed!, values, scales], [{ shape: ["n", outputs] }], {}, FLYWHEEL)[0]!;
  return { normed: normed!, map };
}

/** Without those that name the graph's outputs. */
const nodesOf = (graph: Graph) => fused(graph).nodes.filter(({ op }) => op !== "Identity");
const opsOf = (graph: Graph) => nodesOf(graph).map(({ op }) => op);

describe("an int8 map takes in the norm before it", () => {
  it("and drops its result, if nothing else needs it", () => {
    const g = new Graph();
    g.output("y", normAndMap(g).map());
    expect(nodesOf(g)).toMatchObject([{ op: "Int8Linear", outputs: [{}], attributes: { input: 1 } }]);
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
