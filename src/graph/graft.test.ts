import { describe, expect, it } from "vitest";
import { graft, needed } from "./graft.ts";
import { Graph, type Value } from "./graph.ts";
import { add, mul, scalar, split } from "./ops.ts";
import { floats, GraphSession } from "./session.ts";

describe("graft", () => {
  const g = new Graph();
  const x = g.input("x", ["n", 4]);
  const y = g.input("y", ["n", 4]);
  const weight = g.initializer("weight", [4, 8], new Float32Array(32).fill(2));
  const sum = add(g, x, y);
  const square = mul(g, sum, sum);
  const [left, right] = split(g, square, 1, [2, 2]);
  const result = add(g, left!, scalar(g, 1));

  async function run(results: readonly Value[], given: readonly Value[], feeds: readonly Float32Array[]) {
    const target = new Graph();
    const inputs = given.map((value, i) => [value, target.input(`in${i}`, value.shape)] as const);
    for (const [i, copy] of graft(target, g, results, new Map(inputs)).entries()) target.output(`out${i}`, copy);
    const session = await GraphSession.create(target, { threads: 1 });
    const sizes = given.map(({ shape }) => shape[1] as number);
    const outputs = await session.run(
      Object.fromEntries(feeds.map((data, i) => [`in${i}`, floats(data, [1, sizes[i]!])])),
    );
    await session.close();
    return results.map((_, i) => [...(outputs[`out${i}`]!.data as Float32Array)]);
  }

  it("copies what the results need and nothing else", () => {
    const target = new Graph();
    const [a, b] = [target.input("a", ["n", 4]), target.input("b", ["n", 4])];
    const given = new Map([
      [x, a],
      [y, b],
    ]);
    graft(target, g, [sum], given);
    expect(target.nodes.map(({ op }) => op)).toEqual(["Add"]);
    expect(target.initializers).toEqual([]);
    graft(target, g, [add(g, weight, weight)], given);
    expect(target.initializers.map(({ value }) => value.name)).toEqual(["weight"]);
    expect(() => graft(new Graph(), g, [sum], new Map([[x, a]]))).toThrow("y is needed and not given");
  });

  it("computes the same from a cut, even between the outputs of one node", async () => {
    const inputs = [Float32Array.of(1, 2, 3, 4), Float32Array.of(4, 3, 2, 1)];
    expect(await run([result, square], [x, y], inputs)).toEqual([
      [26, 26],
      [25, 25, 25, 25],
    ]);
    expect(await run([result], [square], [Float32Array.of(25, 25, 25, 25)])).toEqual([[26, 26]]);
    expect(await run([result, right!], [square, left!], [Float32Array.of(9, 9, 9, 9), Float32Array.of(1, 1)])).toEqual([
      [2, 2],
      [9, 9],
    ]);
  });

  it("copies constants of any size as constants", () => {
    const [source, target] = [new Graph(), new Graph()];
    const long = (value: number) => new Float32Array(100).fill(value);
    const from = source.input("x", [100]);
    const sum = add(source, from, source.constant(long(1)));
    // The first constant of the target has the name that the source's has there.
    const own = target.constant(long(2));
    const [copy] = graft(target, source, [sum], new Map([[from, own]]));
    expect(target.initializers.map(({ value }) => value.name)).toEqual([own.name, "const_2"]);
    expect(copy!.node!.inputs[1]).toBe(target.constant(long(1)));
  });

  it("says which values a result is computed from", () => {
    expect(needed([result], [x, y, square, weight])).toEqual(new Set([square]));
    expect(needed([sum, right!], [x, y, square])).toEqual(new Set([x, y, square]));
    expect(needed([x], [x])).toEqual(new Set([x]));
  });

  it("survives a trace that is very deep", () => {
    const deep = new Graph();
    const start = deep.input("x", [1]);
    let value = start;
    for (let i = 0; i < 50_000; i++) value = add(deep, value, value);
    const target = new Graph();
    graft(target, deep, [value], new Map([[start, target.input("x", [1])]]));
    expect(target.nodes).toHaveLength(50_000);
  });
});
