// Measures the runtime's integer products alone: the linear layers of one step at the model's sizes, with two bytes per
// activation as in src/model/linear/linear.ts. There is no attention, no norm and no sampling. No int8 step on this runtime
// can be faster.

import { Graph, MICROSOFT, type Value } from "../../src/graph/graph.ts";
import { scalar, slice } from "../../src/graph/ops.ts";
import { bytes, GraphSession, int64s } from "../../src/graph/session.ts";
import { linearShape } from "../../src/model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { LinearName } from "../../src/model/families/tensor-names.ts";
import { type Lap, startLap } from "../process/stopwatch.ts";

export interface ProductsProbe {
  /** Runs the products of `steps` steps with this many tokens each, and logits for this many of them. */
  run(tokensPerStep: number, logits: number, steps: number): Promise<Lap>;
}

export interface ProductsProbeOptions {
  config: ModelConfig;
  threads: number;
}

/** Maps with the same input are joined, as in the engine. */
const MAPS: readonly (readonly LinearName[])[] = [["q", "k", "v"], ["o"], ["gate", "up"], ["down"]];
const DIGITS = 2;

export async function create({ config, threads }: ProductsProbeOptions): Promise<ProductsProbe> {
  const g = new Graph();
  const wide = config.hiddenSize;
  const headRows = g.input("head_rows", [1], "int64");
  let x = g.input("x", ["rows", wide], "uint8");
  for (let layer = 0; layer < config.numLayers; layer++) {
    for (const names of MAPS) {
      // After the last layer's attention, only rows with logits continue.
      if (layer === config.numLayers - 1 && names[0] === "o") x = slice(g, x, 0, 0, headRows, "head_rows");
      const shapes = names.map((name) => linearShape(config, name));
      const out = shapes.reduce((sum, [outputs]) => sum + outputs, 0);
      const inputs = shapes[0]![1];
      x = rounded(g, product(g, first(g, x, inputs), `${layer}.${names[0]}`, inputs, out));
    }
  }
  g.output("y", product(g, first(g, x, wide), "head", wide, config.vocabSize));
  const session = await GraphSession.create(g, { threads });
  return {
    async run(tokensPerStep, logits, steps) {
      const rows = DIGITS * tokensPerStep;
      const feeds = {
        x: bytes(
          new Uint8Array(rows * wide).map((_, i) => i % 251),
          [rows, wide],
        ),
        head_rows: int64s(BigInt64Array.of(BigInt(DIGITS * logits)), [1]),
      };
      await session.run(feeds);
      const lap = startLap();
      for (let i = 0; i < steps; i++) await session.run(feeds);
      return lap(tokensPerStep * steps);
    },
  };
}

function product(g: Graph, x: Value, name: string, inputs: number, out: number): Value {
  const weights = Int8Array.from({ length: inputs * out }, (_, i) => (i % 255) - 127);
  const operands = [
    x,
    g.initializer(name, [inputs, out], weights),
    scalar(g, 1),
    g.initializer(`${name}.scale`, [out], new Float32Array(out).fill(1)),
    zeroPoint(g),
  ];
  return g.add("MatMulIntegerToFloat", operands, [{ shape: [x.shape[0]!, out] }], {}, MICROSOFT)[0]!;
}

/** The bytes for the next map. If it has fewer inputs than the last map has outputs, the rest is cut off. */
function first(g: Graph, x: Value, inputs: number): Value {
  return x.shape[1] === inputs ? x : slice(g, x, 1, 0, inputs, inputs);
}

function rounded(g: Graph, x: Value): Value {
  const operands = [x, scalar(g, 1000), zeroPoint(g)];
  return g.add("QuantizeLinear", operands, [{ shape: x.shape, dtype: "uint8" }])[0]!;
}

function zeroPoint(g: Graph): Value {
  return g.constant(new Uint8Array([128]), []);
}
