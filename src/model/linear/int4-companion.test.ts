import { expect, it } from "vitest";
import { Graph } from "../../graph/graph.ts";
import { floats, GraphSession } from "../../graph/session.ts";
import { withCompanion } from "./int4-companion.ts";
import { linear } from "./linear.ts";
import { matrixOf } from "./matrix-rows.ts";

const [OUT, INPUTS] = [8, 64];

it("gives a row the same bits whatever rows are beside it, and takes no rows at all", async () => {
  const g = new Graph();
  const values = Float32Array.from({ length: OUT * INPUTS }, (_, i) => Math.sin(7 * i * i));
  const map = { name: "w", weight: matrixOf(values, OUT, INPUTS), bias: null, digits: 63 as const };
  const x = g.input("x", ["n", INPUTS]);
  g.output(
    "y",
    withCompanion(g, x, (rows) => linear(g, rows, map, "int4")),
  );
  const session = await GraphSession.create(g, { threads: 1 });
  const rows = Float32Array.from({ length: 130 * INPUTS }, (_, i) => Math.sin(3 * i * i));
  const run = async (count: number) => {
    const { y } = await session.run({ x: floats(rows.subarray(0, count * INPUTS), [count, INPUTS]) });
    expect(y!.dims).toEqual([count, OUT]);
    return y!.data as Float32Array;
  };
  const most = await run(130);
  for (const count of [0, 1, 2, 129]) expect(await run(count)).toEqual(most.slice(0, count * OUT));
  await session.close();
});
