// Runs single layers forward and backward: the stages before and after attention, slice by slice, and the attention
// between them. Values have the names of layer-pieces.ts. The caller decides what to keep.

import type { Tensor } from "onnxruntime-node";
import type { Feeds, SessionOptions } from "../../../graph/session.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import { Attention, type Projections } from "../attention/attention.ts";
import type { AttentionCall } from "../attention/attention-calls.ts";
import { addInto, joinSlices, rowsOf } from "../packing/row-slices.ts";
import {
  AROUND_ATTENTION,
  backwardPieces,
  forwardPieces,
  type LayerPieces,
  type PieceOptions,
} from "./layer-pieces.ts";
import { Stage } from "./stage.ts";

export interface LayerRunnerOptions extends PieceOptions, SessionOptions {
  /** Blocks of serving, to give exactly its bits; null = a faster order of summation. */
  positionsPerBlock: number | null;
}

/** What the backward pass needs of a layer. */
export interface LayerValues {
  /** x, kept.GROUP and narrow.SITE, slice by slice. */
  kept: readonly Feeds[];
  projections: Projections;
  /** [n, numHeads * headDim] */
  attended: Float32Array;
}

export interface LayerPass {
  /** The layer's output, slice by slice. */
  y: Tensor[];
  values: LayerValues;
}

export interface LayerGradients {
  /** Gradient of the layer's input, slice by slice. */
  dx: Tensor[];
  /** da.SITE and db.GROUP. */
  factors: ReadonlyMap<string, Float32Array>;
}

interface Stages {
  before: Stage;
  after: Stage;
}

export class LayerRunner {
  readonly #stages: { forward: Stages; backward: Stages };
  readonly #attention: Attention;

  private constructor(stages: { forward: Stages; backward: Stages }, attention: Attention) {
    this.#stages = stages;
    this.#attention = attention;
  }

  /** Reads the weights once per direction, so that only one set is in memory beside the sessions. */
  static async create(checkpoint: Checkpoint, options: LayerRunnerOptions): Promise<LayerRunner> {
    const stages = async (pieces: (layer: number) => LayerPieces): Promise<Stages> => {
      const all = checkpoint.config.layers.map((_, layer) => pieces(layer));
      return {
        before: await Stage.create(
          all.map(({ before }) => before),
          options,
        ),
        after: await Stage.create(
          all.map(({ after }) => after),
          options,
        ),
      };
    };
    const forward = await stages((layer) => forwardPieces(checkpoint, options, layer));
    const backward = await stages((layer) => backwardPieces(checkpoint, options, layer));
    const attention = await Attention.create(checkpoint.config, options.positionsPerBlock, options);
    return new LayerRunner({ forward, backward }, attention);
  }

  /** `inputs`: x and all other inputs of the stages, slice by slice. */
  async forward(layer: number, inputs: readonly Feeds[], calls: readonly AttentionCall[]): Promise<LayerPass> {
    const { before, after } = this.#stages.forward;
    const first = await inOrder(inputs, (feeds) => before.run(layer, feeds));
    const join = (name: string) => joinSlices(first.map((values) => values[name]!));
    const projections = { q: join("q"), k: join("k"), v: join("v") };
    const attended = await this.#attention.forward(calls, projections);
    const attendedOf = slicer(attended, first, "q");
    const second = await inOrder(inputs, (feeds, i) => after.run(layer, { ...feeds, attended: attendedOf(i) }));
    const kept = inputs.map(({ x }, i) => {
      const { q, k, v, ...keptBefore } = first[i]!;
      const { y, ...keptAfter } = second[i]!;
      return { x: x!, ...keptBefore, ...keptAfter };
    });
    return { y: second.map(({ y }) => y!), values: { kept, projections, attended } };
  }

  /** `inputs`: those of the forward pass, and dy. The values are from the forward pass. */
  async backward(
    layer: number,
    inputs: readonly Feeds[],
    { kept, projections, attended }: LayerValues,
    calls: readonly AttentionCall[],
  ): Promise<LayerGradients> {
    const { after, before } = this.#stages.backward;
    const sums = new Map<string, Float32Array>();
    const feeds = inputs.map((slice, i) => ({ ...slice, ...kept[i] }));
    const attendedOf = slicer(attended, feeds, "x");
    const first = await inOrder(feeds, async (slice, i) => {
      const { dx, dattended, ...factors } = await after.run(layer, { ...slice, attended: attendedOf(i) });
      sumUp(sums, factors);
      return { around: dx!, dattended: dattended! };
    });
    const dAttended = joinSlices(first.map(({ dattended }) => dattended));
    const { q, k, v } = await this.#attention.backward(calls, projections, attended, dAttended);
    const [dq, dk, dv] = [q, k, v].map((gradient) => slicer(gradient, feeds, "x"));
    const dx = await inOrder(feeds, async (slice, i) => {
      const seeds = { dq: dq!(i), dk: dk!(i), dv: dv!(i), [AROUND_ATTENTION]: first[i]!.around };
      const { dx: gradient, ...factors } = await before.run(layer, { ...slice, ...seeds });
      sumUp(sums, factors);
      return gradient!;
    });
    return { dx, factors: sums };
  }

  async close(): Promise<void> {
    for (const { before, after } of Object.values(this.#stages)) {
      await before.close();
      await after.close();
    }
    await this.#attention.close();
  }
}

async function inOrder<Item, Result>(
  items: readonly Item[],
  run: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [i, item] of items.entries()) results.push(await run(item, i));
  return results;
}

/** Cuts a matrix into slices with the same numbers of rows as the values of this name. */
function slicer(data: Float32Array, slices: readonly Feeds[], name: string): (index: number) => Tensor {
  const counts = slices.map((values) => values[name]!.dims[0]!);
  const starts = counts.map((_, i) => counts.slice(0, i).reduce((sum, count) => sum + count, 0));
  const width = data.length / counts.reduce((sum, count) => sum + count, 0);
  return (index) => rowsOf(data, { row: starts[index]!, count: counts[index]! }, width);
}

function sumUp(sums: Map<string, Float32Array>, gradients: Feeds): void {
  for (const [name, { data }] of Object.entries(gradients)) {
    const sum = sums.get(name);
    if (sum === undefined) sums.set(name, data as Float32Array);
    else addInto(sum, 0, data as Float32Array, 0, sum.length);
  }
}
