import { expect, it } from "vitest";
import { Graph } from "../../graph/graph.ts";
import { floats, GraphSession } from "../../graph/session.ts";
import { seededRandom } from "../../training/random.ts";
import { INT4_ROWS, int4RowsDifferAlone, usableWeights } from "./int4-probe.ts";
import { linear } from "./linear.ts";
import { matrixOf } from "./matrix-rows.ts";

const [inputs, out] = [512, 48];

it("finds which rows of an int4 product have the same bits in any batch", async () => {
  const random = seededRandom(5);
  const values = (count: number) => Float32Array.from({ length: count }, () => random() - 0.5);
  const weight = matrixOf(values(out * inputs), out, inputs);
  const x = values((2 * INT4_ROWS + 2) * inputs);
  const type = await usableWeights("int4");
  for (const threads of [1, 2]) {
    const g = new Graph();
    g.output("y", linear(g, g.input("x", ["n", inputs]), { name: "w", weight, bias: null, digits: 63 }, type));
    const session = await GraphSession.create(g, { threads });
    const product = async (rows: number) => {
      const { y } = await session.run({ x: floats(x.slice(0, rows * inputs), [rows, inputs]) });
      return y!.data as Float32Array;
    };
    const whole = await product(2 * INT4_ROWS + 2);
    const alone = await int4RowsDifferAlone();
    for (const rows of [1, 2, 3, 5, 32, INT4_ROWS, INT4_ROWS + 1, INT4_ROWS + 2, 2 * INT4_ROWS + 1]) {
      if (alone && rows % INT4_ROWS === 1) continue;
      expect(await product(rows)).toEqual(whole.slice(0, rows * out));
    }
    await session.close();
  }
});
