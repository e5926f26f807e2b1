// The inputs of a pass over a micro-batch: embeddings for the first layer, and for every layer rotation angles, row
// numbers and attention calls. Made once per pass. Layers with the same rotary parameters or window share them.

import type { Tensor } from "onnxruntime-node";
import { type Feeds, int64s } from "../../../graph/session.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { takesLongFactors } from "../../../model/checkpoint/rope.ts";
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
  readonly #ropes: ReturnType<typeof distinctRopes>;
  readonly #context: number | undefined;
  /** By rope and whether its long factors count. */
  readonly #tables = new Map<string, RotaryTable>();

  /** `context`: see TrainableModelOptions. */
  constructor(checkpoint: Checkpoint, positionsPerBlock: number | null, context?: number) {
    const { config } = checkpoint;
    this.#config = config;
    this.#positionsPerBlock = positionsPerBlock;
    this.#embedding = Embedding.of(checkpoint);
    this.#context = context;
    this.#ropes = distinctRopes(config.layers);
  }

  make({ ids, positions, segments }: MicroBatch): PassInputs {
    const { hiddenSize, layers } = this.#config;
    const slices = sliceRows(ids.length);
    const embeddings = new Float32Array(ids.length * hiddenSize);
    for (const [row, id] of ids.entries()) this.#embedding.copyTo(id, embeddings, row, positions[row]!);
    const counted = slices.map((rows): Feeds => ({ rows: counting(rows.count) }));
    const context = this.#context ?? positions.reduce((most, position) => Math.max(most, position + 1), 0);
    const feeds = this.#ropes.specs.map((_, rope) => {
      const table = this.#table(rope, context);
      const cos = new Float32Array(ids.length * table.width);
      const sin = new Float32Array(ids.length * table.width);
      for (const [row, position] of positions.entries()) table.copyTo(position, 1, cos, sin, row);
      return slices.map((rows, i): Feeds => {
        return { ...counted[i], cos: rowsOf(cos, rows, table.width), sin: rowsOf(sin, rows, table.width) };
      });
    });
    const windows = new Set(layers.map(({ window }) => window));
    const calls = new Map(
      [...windows].map((window) => [window, attentionCalls(segments, window, this.#positionsPerBlock)]),
    );
    return {
      embeddings: slices.map((rows) => rowsOf(embeddings, rows, hiddenSize)),
      feeds: (layer) => {
        const rope = this.#ropes.ofLayer[layer]!;
        return rope === null ? counted : feeds[rope]!;
      },
      calls: (layer) => calls.get(layers[layer]!.window)!,
    };
  }

  #table(rope: number, context: number): RotaryTable {
    const spec = this.#ropes.specs[rope]!;
    const long = takesLongFactors(spec, context);
    const key = `${rope} ${long}`;
    const table = this.#tables.get(key) ?? new RotaryTable(spec, this.#config.headDim, FIRST_POSITIONS, long);
    this.#tables.set(key, table);
    return table;
  }
}

/** 0 .. count-1: [count, 1]. */
function counting(count: number): Tensor {
  return int64s(
    BigInt64Array.from({ length: count }, (_, i) => BigInt(i)),
    [count, 1],
  );
}
