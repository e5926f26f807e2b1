// The two products of an adapter, x · A and t · B, for one adapter: the trainer's, and those of the serving graph without the
// native module.

import { type Dim, FLYWHEEL, type Graph, type Value } from "../../graph/graph.ts";
import { matmul, matmulTransposed, piecesMatmul, reduceSum, reshape, transposedMatmul } from "../../graph/ops.ts";
import { hasKernels } from "../../graph/session.ts";

/** x · A, x: [n, in] or [n, 1, in], a: [in, columns] -> [n, columns]. */
export function narrowed(g: Graph, x: Value, a: Value): Value {
  return hasKernels ? product(g, "LoraNarrow", x, a) : inPieces(g, x, a);
}

/** t · B, [n, columns] -> [n, out]. */
export function widened(g: Graph, t: Value, b: Value): Value {
  return hasKernels ? product(g, "LoraWiden", t, b) : matmul(g, t, b);
}

/** One of the native module's, with the order of its LoraAdd (kernel-lora.ts). */
function product(g: Graph, op: string, a: Value, b: Value): Value {
  const [y] = g.add(op, [a, b], [{ shape: [a.shape[0]!, b.shape[1]!] }], {}, FLYWHEEL);
  defineProduct(g, y!, a, b);
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
