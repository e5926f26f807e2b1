// Runs steps of a checkpoint's decoder on ONNX Runtime: gathers embeddings, positions, masks and block lists into the
// graph's inputs, runs it, and writes the new keys and values into the pool. One run holds all one-token chunks and at
// most one longer chunk; a step with several longer chunks takes several runs.

import type { AdapterHost } from "../engine/model-host.ts";
import type { Chunk, Runner } from "../engine/runner.ts";
import { GraphSession } from "../graph/session.ts";
import { type Checkpoint, openCheckpoint } from "./checkpoint.ts";
import { buildDecoderGraph } from "./decoder-graph.ts";
import { Embedding } from "./embedding.ts";
import { probeInt8Range } from "./int8-probe.ts";
import { KvPool } from "./kv-pool.ts";
import type { WeightType } from "./linear.ts";
import { LoraSlots } from "./lora-slots.ts";
import type { ModelConfig } from "./model-config.ts";
import { distinctRopes, RotaryTable } from "./rotary-table.ts";
import { StepInputs, wantedRows } from "./step-inputs.ts";

export interface DecoderRunnerOptions {
  weightType: WeightType;
  threads: number;
  blockSize: number;
  numBlocks: number;
  /** Positions to prepare for: the context length. */
  maxPositions: number;
  maxLoras: number;
  maxLoraRank: number;
}

/** A row of its own, with no past; nothing of it is kept. */
const companion: Chunk = {
  tokens: Int32Array.of(0),
  start: 0,
  blocks: new Int32Array(0),
  adapterSlot: 0,
  logits: "none",
};

export class DecoderRunner implements Runner {
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly blockSize: number;
  readonly numBlocks: number;
  readonly adapters: AdapterHost;
  private readonly config: ModelConfig;
  private readonly folder: string;
  private readonly options: DecoderRunnerOptions;
  private readonly pool: KvPool;
  private readonly inputs: StepInputs;
  private session: GraphSession;
  /** Whether the graph has inputs for adapters: from the first adapter on, because they cost a little in every step. */
  private takesAdapters = false;

  private constructor(checkpoint: Checkpoint, options: DecoderRunnerOptions, session: GraphSession) {
    const { config } = checkpoint;
    this.config = config;
    this.folder = checkpoint.folder;
    this.options = options;
    this.session = session;
    this.vocabSize = config.vocabSize;
    this.maxPositions = options.maxPositions;
    this.blockSize = options.blockSize;
    this.numBlocks = options.numBlocks;
    this.pool = new KvPool(config, options.blockSize, options.numBlocks);
    const slots = new LoraSlots(config, options.maxLoras, options.maxLoraRank);
    this.adapters = {
      maxLoras: slots.maxLoras,
      maxLoraRank: slots.maxLoraRank,
      load: async (folder) => {
        if (!this.takesAdapters) await this.takeAdapters();
        return slots.load(folder);
      },
      unload: (version) => slots.unload(version),
      slotOf: (version) => slots.slotOf(version),
    };
    const ropes = distinctRopes(config.layers).specs;
    this.inputs = new StepInputs({
      config,
      pool: this.pool,
      weightType: options.weightType,
      embedding: new Embedding(checkpoint.tensor(checkpoint.tensors.embedding.name), config.embeddingScale),
      rotary: ropes.map((spec) => new RotaryTable(spec, config.headDim, options.maxPositions)),
      adapters: slots,
    });
  }

  /** Reads the weights and prepares the graph; the checkpoint may be closed afterwards. */
  static async create(checkpoint: Checkpoint, options: DecoderRunnerOptions): Promise<DecoderRunner> {
    return new DecoderRunner(checkpoint, options, await createSession(checkpoint, options, false));
  }

  async forward(chunks: readonly Chunk[]): Promise<Float32Array[]> {
    const decoding = chunks.filter((chunk) => chunk.tokens.length === 1);
    const prefilling = chunks.filter((chunk) => chunk.tokens.length > 1);
    const logits = new Map<Chunk, Float32Array>();
    for (let i = 0; i < Math.max(1, prefilling.length); i++) {
      await this.run(i === 0 ? decoding : [], prefilling[i] ?? null, logits);
    }
    return chunks.map((chunk) => logits.get(chunk)!);
  }

  copyBlock(from: number, to: number): void {
    this.pool.copyBlock(from, to);
  }

  async close(): Promise<void> {
    await this.session.close();
  }

  private async run(
    decoding: readonly Chunk[],
    prefill: Chunk | null,
    logits: Map<Chunk, Float32Array>,
  ): Promise<void> {
    // Adapters' products must not have a single row (see paged-attention.ts): a lone row gets a companion.
    const alone = decoding.length === 1 && prefill === null && decoding[0]!.adapterSlot !== 0;
    const feeds = this.inputs.prepare(alone ? [decoding[0]!, companion] : decoding, prefill, this.takesAdapters);
    const outputs = await this.session.run(feeds);
    const chunks = prefill === null ? decoding : [...decoding, prefill];
    this.remember(chunks, outputs.kv!.data as Float32Array);
    const rows = outputs.logits!.data as Float32Array;
    let row = 0;
    for (const chunk of chunks) {
      const count = wantedRows(chunk);
      logits.set(chunk, rows.subarray(row * this.vocabSize, (row + count) * this.vocabSize));
      row += count;
    }
  }

  /** Builds the graph again, with inputs for adapters; the old one serves until the new one is ready. */
  private async takeAdapters(): Promise<void> {
    const checkpoint = openCheckpoint(this.folder);
    try {
      const session = await createSession(checkpoint, this.options, true);
      await this.session.close();
      this.session = session;
      this.takesAdapters = true;
    } finally {
      checkpoint.close();
    }
  }

  /** kv: [2 * layers, n, kvHeads * headDim] */
  private remember(chunks: readonly Chunk[], kv: Float32Array): void {
    const layers = this.config.numLayers;
    const size = kv.length / (2 * layers);
    for (let layer = 0; layer < layers; layer++) {
      const keys = kv.subarray(2 * layer * size, (2 * layer + 1) * size);
      const values = kv.subarray((2 * layer + 1) * size, (2 * layer + 2) * size);
      let row = 0;
      for (const { tokens, start, blocks } of chunks) {
        this.pool.write(layer, keys, values, row, start, blocks, tokens.length);
        row += tokens.length;
      }
    }
  }
}

async function createSession(
  checkpoint: Checkpoint,
  options: DecoderRunnerOptions,
  lora: boolean,
): Promise<GraphSession> {
  const { weightType, blockSize, threads } = options;
  const int8Range = weightType === "float32" ? 127 : await probeInt8Range();
  const graph = buildDecoderGraph(checkpoint, { weightType, int8Range, blockSize, lora });
  return GraphSession.create(graph, { threads });
}
