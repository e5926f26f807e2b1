// Attention of a whole micro-batch, forward and backward. Runs the attention graphs call by call (attention-calls.ts)
// and joins the results. It has no weights, so all layers use the same one.

import { type Feeds, floats, GraphSession, hasKernels, type SessionOptions } from "../../../graph/session.ts";
import { cacheTypeFor } from "../../../model/attention/cache-type.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { WeightType } from "../../../model/linear/linear.ts";
import { addInto, type Rows, rowsOf } from "../packing/row-slices.ts";
import type { AttentionCall } from "./attention-calls.ts";
import { attentionBackward, blockwiseForward, kernelForward, plainForward } from "./attention-graphs.ts";

/** q: [n, numHeads * headDim] · k and v: [n, kvHeads * headDim]. */
export interface Projections {
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
}

const FORWARD = { plain: plainForward, blockwise: blockwiseForward, kernel: kernelForward };
type Order = keyof typeof FORWARD;

export class Attention {
  readonly #queryWidth: number;
  readonly #keyWidth: number;
  /** Which order of summation the forward graph has. */
  readonly #order: Order;
  readonly #sessions: { forward: GraphSession; backward: GraphSession };

  private constructor(config: ModelConfig, order: Order, sessions: { forward: GraphSession; backward: GraphSession }) {
    this.#queryWidth = config.numHeads * config.headDim;
    this.#keyWidth = config.numKvHeads * config.headDim;
    this.#order = order;
    this.#sessions = sessions;
  }

  /** `positionsPerBlock`: blocks of serving, to give exactly its bits; null = a faster order of summation, without a cache. */
  static async create(
    config: ModelConfig,
    positionsPerBlock: number | null,
    options: SessionOptions & { weightType: WeightType },
  ): Promise<Attention> {
    const order = positionsPerBlock === null ? "plain" : hasKernels ? "kernel" : "blockwise";
    const cacheType = order === "kernel" ? cacheTypeFor(options.weightType !== "float32", true) : "float32";
    return new Attention(config, order, {
      forward: await GraphSession.create(FORWARD[order](config, positionsPerBlock ?? 0, cacheType), options),
      backward: await GraphSession.create(attentionBackward(config, cacheType), options),
    });
  }

  /** Returns [n, numHeads * headDim]. */
  async forward(calls: readonly AttentionCall[], inputs: Projections): Promise<Float32Array> {
    const attended = new Float32Array(inputs.q.length);
    for (const call of calls) {
      const outputs = await this.#sessions.forward.run({
        ...this.#feeds(call, inputs),
        ...this.#ordered(call, inputs),
      });
      attended.set(outputs.attended!.data as Float32Array, call.queries.row * this.#queryWidth);
    }
    return attended;
  }

  /** Returns the gradients of q, k and v, given the gradient of `attended`. */
  async backward(
    calls: readonly AttentionCall[],
    inputs: Projections,
    attended: Float32Array,
    dAttended: Float32Array,
  ): Promise<Projections> {
    const [queryWidth, keyWidth] = [this.#queryWidth, this.#keyWidth];
    const dq = new Float32Array(inputs.q.length);
    const dk = new Float32Array(inputs.k.length);
    const dv = new Float32Array(inputs.v.length);
    for (const call of calls) {
      const outputs = await this.#sessions.backward.run({
        ...this.#feeds(call, inputs),
        mask: call.feeds.mask!,
        attended: rowsOf(attended, call.queries, queryWidth),
        dattended: rowsOf(dAttended, call.queries, queryWidth),
      });
      dq.set(outputs.dq!.data as Float32Array, call.queries.row * queryWidth);
      addRows(dk, outputs.dk!.data as Float32Array, call.keys, keyWidth);
      addRows(dv, outputs.dv!.data as Float32Array, call.keys, keyWidth);
    }
    return { q: dq, k: dk, v: dv };
  }

  async close(): Promise<void> {
    for (const session of Object.values(this.#sessions)) await session.close();
  }

  /** The inputs of the forward graph that depend on its order of summation. */
  #ordered({ queries, feeds }: AttentionCall, { k, v }: Projections): Feeds {
    const { mask, ...ofServing } = feeds;
    if (this.#order === "plain") return { mask: mask! };
    if (this.#order === "kernel") return ofServing;
    const own = (data: Float32Array) => rowsOf(data, queries, this.#keyWidth);
    return { ...ofServing, own_k: own(k), own_v: own(v) };
  }

  #feeds({ queries, keys }: AttentionCall, { q, k, v }: Projections): Feeds {
    return { q: rowsOf(q, queries, this.#queryWidth), k: this.#gathered(k, keys), v: this.#gathered(v, keys) };
  }

  /** Adjacent rows are not copied. */
  #gathered(data: Float32Array, keys: readonly Rows[]) {
    if (keys.length === 1) return rowsOf(data, keys[0]!, this.#keyWidth);
    const total = keys.reduce((sum, { count }) => sum + count, 0);
    const copy = new Float32Array(total * this.#keyWidth);
    let at = 0;
    for (const { row, count } of keys) {
      copy.set(data.subarray(row * this.#keyWidth, (row + count) * this.#keyWidth), at);
      at += count * this.#keyWidth;
    }
    return floats(copy, [total, this.#keyWidth]);
  }
}

function addRows(target: Float32Array, values: Float32Array, places: readonly Rows[], width: number): void {
  let from = 0;
  for (const { row, count } of places) {
    addInto(target, row * width, values, from, count * width);
    from += count * width;
  }
}
