import { describe, expect, it } from "vitest";
import { Graph } from "../../graph/graph.ts";
import { floats, GraphSession } from "../../graph/session.ts";
import { seededRandom } from "../../training/random.ts";
import { type DigitSteps, type Digits, probeDigitSteps } from "./int8-probe.ts";
import { effectiveWeights, type LinearWeights, linear, type WeightType } from "./linear.ts";
import { matrixOf } from "./matrix-rows.ts";

const inputs = 96;
const out = 40;

function weights(digits: Digits): LinearWeights {
  const random = seededRandom(7);
  const values = () => Float32Array.from({ length: out * inputs }, () => random() - 0.5);
  return {
    name: "w",
    weight: matrixOf(values(), out, inputs),
    bias: values().slice(0, out),
    digits,
  };
}

async function run(map: LinearWeights, type: WeightType, x: Float32Array): Promise<Float32Array> {
  const g = new Graph();
  g.output("y", linear(g, g.input("x", ["n", inputs]), map, type));
  const session = await GraphSession.create(g, { threads: 1 });
  const { y } = await session.run({ x: floats(x, [x.length / inputs, inputs]) });
  await session.close();
  return y!.data as Float32Array;
}

/** In float64, with the weights that the type really multiplies with. */
function exact(map: LinearWeights, type: WeightType, row: Float32Array): Float64Array {
  const effective = effectiveWeights(map.weight, type);
  return Float64Array.from({ length: out }, (_, o) =>
    row.reduce((sum, value, i) => sum + value * effective[o * inputs + i]!, map.bias![o]!),
  );
}

/** Rows of very different sizes, one with an outlier, one of zeros. */
function someRows(): Float32Array[] {
  const random = seededRandom(3);
  const row = (size: number) => Float32Array.from({ length: inputs }, () => size * (random() - 0.5));
  const outlier = row(1);
  outlier[5] = 80;
  return [row(1), row(1e-6), row(1e4), outlier, new Float32Array(inputs)];
}

describe("linear in int8", () => {
  // On a machine whose products are not exact for the larger digits, the smaller are used.
  it.each([63, 127] as const)(
    "keeps two digits of up to %i of an activation, each row in units of its own",
    async (steps) => {
      const digitSteps = Math.min(steps, await probeDigitSteps()) as DigitSteps;
      const map = weights(digitSteps);
      const unit = 1 / digitSteps / (2 * digitSteps);
      // Half a unit of the last digit at each input, all in the same direction, is more than any row will show.
      for (const row of someRows()) {
        const y = await run(map, "int8", row);
        const wanted = exact(map, "int8", row);
        const largest = Math.max(...row.map(Math.abs));
        const bound = largest * unit * 0.5 * inputs * 0.5 + 1e-5 * (1 + largest);
        for (let o = 0; o < out; o++) expect(Math.abs(y[o]! - wanted[o]!)).toBeLessThan(bound);
      }
    },
  );

  it("gives a row the same bits beside any other rows, and a row of zeros the bias", async () => {
    const map = weights(await probeDigitSteps());
    const rows = someRows();
    const together = await run(map, "int8", Float32Array.from(rows.flatMap((row) => [...row])));
    for (const [i, row] of rows.entries()) {
      expect(together.slice(i * out, (i + 1) * out)).toEqual(await run(map, "int8", row));
    }
    expect(together.slice(-out)).toEqual(map.bias);
  });
});
