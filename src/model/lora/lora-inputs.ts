// Adapters inside the serving graph. The factors of all adapters in a step lie side by side, and a mask per row, 0 or
// the scale, picks the row's own: y += ((x · A) * mask) · B. In a step without adapters the factors have rank 0. That
// costs no arithmetic, but each input still costs a microsecond, so the graph has these inputs only once there are
// adapters.
//
// A map made of p stored maps (q, k, v) has p factors per adapter. Column (slot * p + part) * rank + i of A is column i
// of that adapter's factor for that part; B holds each part's factor in the outputs of that part, zeros elsewhere.
// `rank` is the same power of two for all slots. So a row's sum splits at the same places whatever its slot is, and the
// result does not depend on who else is in the batch.

import { type Dim, FLYWHEEL, type Graph, type Value } from "../../graph/graph.ts";
import { matmul, matmulTransposed, mul, piecesMatmul, reduceSum, reshape, transposedMatmul } from "../../graph/ops.ts";
import { hasKernels } from "../../graph/session.ts";
import { linearShape } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type Site, sitesOf } from "../checkpoint/sites.ts";

export interface LoraInputs {
  /** x: [n, 1, in] -> [n, 1, out]. `rowsOf`: picks the rows of x from all rows of the step. */
  delta(g: Graph, layer: number, site: Site, x: Value, rowsOf: (all: Value) => Value): Value;
}

/** Graph inputs: lora_mask.P [n, P * columns] for each number of parts P, lora_a.L.SITE, lora_b.L.SITE. */
export function loraInputs(g: Graph, config: ModelConfig): LoraInputs {
  const masks = new Map<number, Value>();
  const factors = config.layers.map((ofModel, layer) => {
    const ofLayer = {} as Record<Site, { a: Value; b: Value; mask: Value }>;
    for (const site of sitesOf(ofModel)) {
      const parts = ofModel.maps[site].length;
      const columns = `lora${parts}`;
      if (!masks.has(parts)) masks.set(parts, g.input(`lora_mask.${parts}`, ["n", columns]));
      const { inputs, out } = siteShape(config, layer, site);
      ofLayer[site] = {
        a: g.input(`lora_a.${layer}.${site}`, [inputs, columns]),
        b: g.input(`lora_b.${layer}.${site}`, [columns, out]),
        mask: masks.get(parts)!,
      };
    }
    return ofLayer;
  });
  return {
    delta(at, layer, site, x, rowsOf) {
      const { a, b, mask } = factors[layer]![site];
      const added = widened(at, narrowed(at, x, a, rowsOf(mask)), b);
      return reshape(at, added, x.shape.with(2, b.shape[1]!));
    },
  };
}

/**
 * (x · A) * mask, x: [n, in] or [n, 1, in] -> [n, columns]; mask: [n, columns], or null = 1. The native module reads only columns
 * with a mask other than 0.
 */
export function narrowed(g: Graph, x: Value, a: Value, mask: Value | null = null): Value {
  if (!hasKernels) return mask === null ? inPieces(g, x, a) : mul(g, inPieces(g, x, a), mask);
  const shape = [x.shape[0]!, a.shape[1]!];
  const [y] = g.add("LoraNarrow", mask === null ? [x, a] : [x, a, mask], [{ shape }], {}, FLYWHEEL);
  if (mask === null) defineProduct(g, y!, x, a);
  return y!;
}

/** t · B, [n, columns] -> [n, out]. The native module reads only columns where t is not 0. */
export function widened(g: Graph, t: Value, b: Value): Value {
  if (!hasKernels) return matmul(g, t, b);
  const [y] = g.add("LoraWiden", [t, b], [{ shape: [t.shape[0]!, b.shape[1]!] }], {}, FLYWHEEL);
  defineProduct(g, y!, t, b);
  return y!;
}

/** The gradient of y = a · b. */
function defineProduct(g: Graph, y: Value, a: Value, b: Value): void {
  g.defineGradient(y, [a, b], (at, dy) => [matmulTransposed(at, dy, b), transposedMatmul(at, a, dy)]);
}

/**
 * x · A in operations of the runtime. The runtime does not pack a matrix that is an input, and splits long sums
 * of such products at places that depend on rows, columns and threads. So the inputs come in pieces too short to be split,
 * and their sums are added in order.
 */
function inPieces(g: Graph, x: Value, a: Value): Value {
  const [inputs, columns] = a.shape as readonly [number, Dim];
  const piece = pieceOf(inputs);
  const pieces = reshape(g, x, [x.shape[0]!, inputs / piece, piece]);
  const y = reduceSum(g, piecesMatmul(g, pieces, reshape(g, a, [inputs / piece, piece, columns])), 0);
  defineProduct(g, y, x, a);
  return y;
}

/** The runtime never splits a sum of this many terms or fewer. */
const UNDIVIDED = 128;

/** The largest divisor of `inputs` that the runtime does not split. */
function pieceOf(inputs: number): number {
  let piece = Math.min(inputs, UNDIVIDED);
  while (inputs % piece !== 0) piece--;
  return piece;
}

/**
 * The columns for a factor of this rank: a power of two, and at least 2. The runtime multiplies a single column in another
 * order than several, and there are several as soon as another adapter is in the batch.
 */
export function paddedRank(rank: number): number {
  return Math.max(2, 2 ** Math.ceil(Math.log2(rank)));
}

export function siteShape(config: ModelConfig, layer: number, site: Site): { inputs: number; out: number } {
  const shapes = config.layers[layer]!.maps[site].map((name) => linearShape(config, name));
  return { inputs: shapes[0]![1], out: shapes.reduce((sum, shape) => sum + shape[0], 0) };
}
