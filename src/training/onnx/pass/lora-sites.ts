// LoRA factors in the layout of the training graphs. The linear layers of a site have the same input, so their factors A are
// side by side, [in, columns], each padded to a power of two (model/lora/lora-products.ts). Linear layers whose
// results stay joined share one matrix B, [columns, out], where each fills its own outputs. Gradients have the same
// layout.

import type { Graph, Value } from "../../../graph/graph.ts";
import { mul, split } from "../../../graph/ops.ts";
import { linearShape, siteShape } from "../../../model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { LinearName, Site } from "../../../model/families/tensor-names.ts";
import { eachPair, type LoraAdapter } from "../../../model/lora/lora-adapter.ts";
import { narrowed, paddedRank, widened } from "../../../model/lora/lora-products.ts";
import type { NamedTensors } from "../../gradient/optimizer.ts";

/** Linear layers of a site whose results stay joined. Gate and up are used separately; joining them would be a copy. */
export function siteGroups(config: ModelConfig, layer: number, site: Site): readonly (readonly LinearName[])[] {
  const maps = config.layers[layer]!.maps[site];
  return site === "gateUp" ? maps.map((name) => [name]) : [maps];
}

export interface Factors<Matrix> {
  a: Matrix;
  /** One per group. */
  b: Matrix[];
}

/** Name of a group, for example "q+k+v". */
export function groupName(maps: readonly LinearName[]): string {
  return maps.join("+");
}

/** Total number of outputs of a group's linear layers. */
export function groupOut(config: ModelConfig, maps: readonly LinearName[]): number {
  return maps.reduce((sum, name) => sum + linearShape(config, name)[0], 0);
}

/** Name of a parameter in the optimizer: "3.q.a" is factor A of the queries in layer 3. */
export function parameterName(layer: number, name: LinearName, factor: "a" | "b"): string {
  return `${layer}.${name}.${factor}`;
}

/** Linear layers that the adapter leaves alone have no parameters, and training leaves them alone too. */
export function parametersOf(adapter: LoraAdapter): NamedTensors {
  const params = new Map<string, Float32Array>();
  for (const { layer, name, pair } of eachPair(adapter.layers)) {
    params.set(parameterName(layer, name, "a"), pair.a);
    params.set(parameterName(layer, name, "b"), pair.b);
  }
  return params;
}

/** Shapes of a site's factors. */
export function siteFactorShapes(
  config: ModelConfig,
  rank: number,
  layer: number,
  site: Site,
): Factors<readonly [number, number]> {
  const columns = (maps: readonly LinearName[]) => maps.length * paddedRank(rank);
  return {
    a: [siteShape(config, layer, site).inputs, columns(config.layers[layer]!.maps[site])],
    b: siteGroups(config, layer, site).map((maps) => [columns(maps), groupOut(config, maps)]),
  };
}

/** Names of a site's factors as inputs of the graphs: a.SITE, b.GROUP. */
export function siteFactorNames(config: ModelConfig, layer: number, site: Site): Factors<string> {
  return { a: `a.${site}`, b: siteGroups(config, layer, site).map((maps) => `b.${groupName(maps)}`) };
}

/** For x [n, in]: what the adapter adds to each group, [n, out], and the scaled x · A, [n, columns]. */
export function siteDeltas(
  g: Graph,
  x: Value,
  { a, b }: Factors<Value>,
  scale: Value,
): { narrow: Value; deltas: Value[] } {
  const narrow = mul(g, narrowed(g, x, a), scale);
  const columns = b.map(({ shape }) => shape[0] as number);
  const parts = b.length === 1 ? [narrow] : split(g, narrow, 1, columns);
  return { narrow, deltas: parts.map((part, i) => widened(g, part, b[i]!)) };
}

/** Matrices to feed for these parameters; zeros for linear layers without any. */
export function siteMatrices(
  config: ModelConfig,
  rank: number,
  params: NamedTensors,
  layer: number,
  site: Site,
): Factors<Float32Array> {
  const shapes = siteFactorShapes(config, rank, layer, site);
  const a = new Float32Array(shapes.a[0] * shapes.a[1]);
  const b = shapes.b.map(([rows, out]) => new Float32Array(rows * out));
  for (const { name, inputs, columns, column, outs, group, row, out, firstOut } of partsOf(config, rank, layer, site)) {
    const storedA = params.get(parameterName(layer, name, "a"));
    const storedB = params.get(parameterName(layer, name, "b"));
    if (storedA === undefined || storedB === undefined) continue;
    for (let i = 0; i < inputs; i++) {
      for (let r = 0; r < rank; r++) a[i * columns + column + r] = storedA[r * inputs + i]!;
    }
    for (let r = 0; r < rank; r++) {
      const first = (row + r) * out + firstOut;
      for (let o = 0; o < outs; o++) b[group]![first + o] = storedB[o * rank + r]!;
    }
  }
  return { a, b };
}

/** Adds the gradients of a site's matrices, times `factor`, to the gradients of the parameters. */
export function addSiteGradients(
  config: ModelConfig,
  rank: number,
  { a, b }: Factors<Float32Array>,
  { layer, site }: { layer: number; site: Site },
  factor: number,
  into: NamedTensors,
): void {
  for (const { name, inputs, columns, column, outs, group, row, out, firstOut } of partsOf(config, rank, layer, site)) {
    const sumA = into.get(parameterName(layer, name, "a"));
    const sumB = into.get(parameterName(layer, name, "b"));
    if (sumA === undefined || sumB === undefined) continue;
    for (let i = 0; i < inputs; i++) {
      for (let r = 0; r < rank; r++) sumA[r * inputs + i]! += factor * a[i * columns + column + r]!;
    }
    const ofGroup = b[group]!;
    for (let r = 0; r < rank; r++) {
      const first = (row + r) * out + firstOut;
      for (let o = 0; o < outs; o++) sumB[o * rank + r]! += factor * ofGroup[first + o]!;
    }
  }
}

/** Where each linear layer is in the matrices of its site: its columns of A, and its rows and outputs of its group's B. */
function partsOf(config: ModelConfig, rank: number, layer: number, site: Site) {
  const { inputs } = siteShape(config, layer, site);
  const padded = paddedRank(rank);
  const columns = config.layers[layer]!.maps[site].length * padded;
  let column = 0;
  return siteGroups(config, layer, site).flatMap((maps, group) => {
    const out = groupOut(config, maps);
    let firstOut = 0;
    return maps.map((name, i) => {
      const outs = linearShape(config, name)[0];
      const part = { name, inputs, columns, column, outs, group, row: i * padded, out, firstOut };
      column += padded;
      firstOut += outs;
      return part;
    });
  });
}
