// The inputs of a pass over a micro-batch: embeddings for the first layer, and for every layer rotation angles, row
// numbers and attention calls. Made once per pass. Layers with the same rotary parameters or window share them.

import type { Tensor } from "onnxruntime-node";
import { type Feeds, int64s } from "../../../graph/session.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { Embedding } from "../../../model/embedding.ts";
import { distinctRopes, RotaryTable } from "../../../model/rotary-table.ts";
import { type AttentionCall, attentionCalls } from "../attention/attention-calls.ts";
import type { MicroBatch } from "../packing/micro-batch.ts";
import { rowsOf, sliceRows } from "../packing/row-slices.ts";

/** Number of positions whose rotation angles are made at the start. Others are made when needed. */
const FIRST_POSITIONS = 2048;

export interface PassInputs {
  /** Input of the first layer, slice by slice: [rows, hidden]. */
  embeddings: Tensor[];
  /** Inputs of a layer except x and the LoRA factors, slice by slice. */
  feeds(layer: number): readonly Feeds[];
  calls(layer: number): readonly AttentionCall[];
}

export class PassInputMaker {
  readonly #config: ModelConfig;
  readonly #positionsPerBlock: number | null;
  readonly #embedding: Embedding;
  readonly #tables: readonly RotaryTable[];
  readonly #tableOfLayer: readonly number[];

  constructor(checkpoint: Checkpoint, positionsPerBlock: number | null) {
    const { config } = checkpoint;
    this.#config = config;
    this.#positionsPerBlock = positionsPerBlock;
    this.#embedding = new Embedding(checkpoint.tensor(checkpoint.tensors.embedding.name), config.embeddingScale);
    const ropes = distinctRopes(config.layers);
    this.#tables = ropes.specs.map((spec) => new RotaryTable(spec, config.headDim, FIRST_POSITIONS));
    this.#tableOfLayer = ropes.ofLayer;
  }

  make({ ids, positions, segments }: MicroBatch): PassInputs {
    const { hiddenSize, layers } = this.#config;
    const slices = sliceRows(ids.length);
    const embeddings = new Float32Array(ids.length * hiddenSize);
    for (const [row, id] of ids.entries()) this.#embedding.copyTo(id, embeddings, row);
    const feeds = this.#tables.map((table) => {
      const cos = new Float32Array(ids.length * table.width);
      const sin = new Float32Array(ids.length * table.width);
      for (const [row, position] of positions.entries()) table.copyTo(position, 1, cos, sin, row);
      return slices.map((rows): Feeds => {
        const angles = { cos: rowsOf(cos, rows, table.width), sin: rowsOf(sin, rows, table.width) };
        return { ...angles, rows: counting(rows.count) };
      });
    });
    const windows = new Set(layers.map(({ window }) => window));
    const calls = new Map(
      [...windows].map((window) => [window, attentionCalls(segments, window, this.#positionsPerBlock)]),
    );
    return {
      embeddings: slices.map((rows) => rowsOf(embeddings, rows, hiddenSize)),
      feeds: (layer) => feeds[this.#tableOfLayer[layer]!]!,
      calls: (layer) => calls.get(layers[layer]!.window)!,
    };
  }
}

/** 0 .. count-1: [count, 1]. */
function counting(count: number): Tensor {
  return int64s(
    BigInt64Array.from({ length: count }, (_, i) => BigInt(i)),
    [count, 1],
  );
}
