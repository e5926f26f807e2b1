// A checkpoint ready for LoRA training on ONNX Runtime. It computes log-probabilities of tokens in a micro-batch, and
// the gradients of the LoRA factors from the derivatives of those log-probabilities. A pass goes layer by layer, so it
// can end in between, and what it keeps can be chosen. A session blocks its thread, so this runs in the trainer
// process.

import type { Tensor } from "onnxruntime-node";
import { type Feeds, floats } from "../../../graph/session.ts";
import { openCheckpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { sitesOf } from "../../../model/families/tensor-names.ts";
import type { WeightType } from "../../../model/linear/linear.ts";
import { weightOptions } from "../../../model/weight-source.ts";
import type { NamedTensors } from "../../gradient/optimizer.ts";
import type { MicroBatch } from "../packing/micro-batch.ts";
import type { Keeping } from "../packing/pack-plan.ts";
import { joinSlices, rowsOf } from "../packing/row-slices.ts";
import { Head, type HeadResult } from "./head.ts";
import { LayerRunner, type LayerValues } from "./layer-runner.ts";
import { addSiteGradients, siteFactorNames, siteFactorShapes, siteMatrices } from "./lora-sites.ts";
import { PassInputMaker, type PassInputs } from "./pass-inputs.ts";
import { passBytes } from "./pass-memory.ts";

export interface TrainableModelOptions {
  folder: string;
  weights: WeightType;
  rank: number;
  threads: number;
  /** Blocks of serving, to give exactly its bits; null = a faster order of summation. */
  positionsPerBlock: number | null;
  /** The context that is served, which decides about LongRoPE factors; absent = each pass by its longest sequence. */
  context?: number;
}

/** Called between layers; throws to end the pass. */
export type Between = () => Promise<void>;

/** A forward pass. It can go backward once, unless nothing was kept. */
export interface ForwardPass extends HeadResult {
  batch: MicroBatch;
  inputs: PassInputs;
  /** What is kept of each layer, in order. */
  kept: KeptLayer[];
}

interface KeptLayer {
  /** The layer's input, slice by slice. */
  x: readonly Tensor[];
  /** null = computed again from x. */
  values: LayerValues | null;
}

interface Parts {
  layers: LayerRunner;
  head: Head;
  inputs: PassInputMaker;
}

export class TrainableModel {
  readonly config: ModelConfig;
  readonly rank: number;
  readonly #positionsPerBlock: number | null;
  readonly #parts: Parts;
  #lora: Feeds[] = [];

  private constructor(config: ModelConfig, { rank, positionsPerBlock }: TrainableModelOptions, parts: Parts) {
    this.config = config;
    this.rank = rank;
    this.#positionsPerBlock = positionsPerBlock;
    this.#parts = parts;
  }

  static async create(options: TrainableModelOptions): Promise<TrainableModel> {
    const { folder, weights, rank, threads, positionsPerBlock } = options;
    const checkpoint = openCheckpoint(folder);
    try {
      // training shares the cores with serving, so its threads do not spin while they wait
      const common = { ...(await weightOptions(weights)), threads, spinning: false };
      return new TrainableModel(checkpoint.config, options, {
        layers: await LayerRunner.create(checkpoint, { ...common, rank, positionsPerBlock }),
        head: await Head.create(checkpoint, common),
        inputs: new PassInputMaker(checkpoint, positionsPerBlock, options.context),
      });
    } finally {
      checkpoint.close();
    }
  }

  /** Sets the adapter for the following passes. Scale 0 gives the base model. */
  setParameters(params: NamedTensors, scale: number): void {
    const { config, rank } = this;
    this.#lora = config.layers.map((ofModel, layer) => {
      const feeds: Feeds = { lora_scale: floats(Float32Array.of(scale), []) };
      for (const site of sitesOf(ofModel)) {
        const names = siteFactorNames(config, layer, site);
        const shapes = siteFactorShapes(config, rank, layer, site);
        const { a, b } = siteMatrices(config, rank, params, layer, site);
        feeds[names.a] = floats(a, shapes.a);
        for (const [i, name] of names.b.entries()) feeds[name] = floats(b[i]!, shapes.b[i]!);
      }
      return feeds;
    });
  }

  async forward(batch: MicroBatch, keeping: Keeping | "nothing", between: Between): Promise<ForwardPass> {
    const inputs = this.#parts.inputs.make(batch);
    const kept: KeptLayer[] = [];
    let x = inputs.embeddings;
    for (let layer = 0; layer < this.config.numLayers; layer++) {
      await between();
      const { y, values } = await this.#parts.layers.forward(layer, this.#feeds(layer, inputs, x), inputs.calls(layer));
      if (keeping !== "nothing") kept.push({ x, values: keeping === "everything" ? values : null });
      x = y;
    }
    await between();
    const result = await this.#parts.head.run(joinSlices(x), batch.reads, keeping !== "nothing");
    return { ...result, batch, inputs, kept };
  }

  /** Adds the gradients for these derivatives (one per read) to `into`. */
  async backward(pass: ForwardPass, dLogprobs: Float64Array, into: NamedTensors, between: Between): Promise<void> {
    const { inputs, kept } = pass;
    const { layers } = this.#parts;
    const scale = powerOfTwo(dLogprobs);
    let dy = hiddenGradient(pass, dLogprobs, scale, this.config.hiddenSize);
    for (let layer = this.config.numLayers - 1; layer >= 0; layer--) {
      await between();
      const calls = inputs.calls(layer);
      // removed, so that a long pass does not hold everything until its end
      const { x, values: known } = kept.pop()!;
      const feeds = this.#feeds(layer, inputs, x);
      const values = known ?? (await layers.forward(layer, feeds, calls)).values;
      const withGradient = feeds.map((slice, i) => ({ ...slice, dy: dy[i]! }));
      const { dx, factors } = await layers.backward(layer, withGradient, values, calls);
      for (const site of sitesOf(this.config.layers[layer]!)) {
        const names = siteFactorNames(this.config, layer, site);
        const gradients = { a: factors.get(`d${names.a}`)!, b: names.b.map((name) => factors.get(`d${name}`)!) };
        addSiteGradients(this.config, this.rank, gradients, { layer, site }, 1 / scale, into);
      }
      dy = dx;
    }
  }

  /** Peak bytes of a forward and backward pass. */
  passBytes(rows: number, longest: number, keeping: Keeping): number {
    return passBytes(this.config, this.#positionsPerBlock, rows, longest, keeping);
  }

  async close(): Promise<void> {
    await this.#parts.layers.close();
    await this.#parts.head.close();
  }

  #feeds(layer: number, inputs: PassInputs, x: readonly Tensor[]): Feeds[] {
    return inputs.feeds(layer).map((slice, i) => ({ ...slice, ...this.#lora[layer], x: x[i]! }));
  }
}

/**
 * A factor that brings the largest derivative close to 1. Far smaller gradients become denormal floats, which are
 * imprecise and slow. A power of two changes no bit of the mantissa.
 */
function powerOfTwo(derivatives: Float64Array): number {
  const largest = derivatives.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return largest > 0 && Number.isFinite(largest) ? 2 ** Math.min(-Math.floor(Math.log2(largest)), 1023) : 1;
}

/** Gradient of the last layer's output: the direction of each read times its derivative, in the row of the read. */
function hiddenGradient(
  { batch, inputs, directions }: ForwardPass,
  dLogprobs: Float64Array,
  scale: number,
  width: number,
): Tensor[] {
  const gradient = new Float32Array(batch.ids.length * width);
  for (const [i, { row }] of batch.reads.entries()) {
    addScaled(gradient, row * width, directions.subarray(i * width, (i + 1) * width), scale * dLogprobs[i]!);
  }
  let row = 0;
  return inputs.embeddings.map(({ dims }) => {
    const slice = rowsOf(gradient, { row, count: dims[0]! }, width);
    row += dims[0]!;
    return slice;
  });
}

function addScaled(target: Float32Array, at: number, values: Float32Array, factor: number): void {
  for (let i = 0; i < values.length; i++) target[at + i]! += factor * values[i]!;
}
