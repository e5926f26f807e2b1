// Runs steps of a checkpoint's decoder on ONNX Runtime: fills the graph's inputs (step-inputs.ts), runs it, and stores
// the new keys and values (step-outputs.ts). One run takes all one-token chunks and at most one piece of a longer
// chunk. A step with more pieces takes several runs.

import { joinRows } from "../graph/join-rows.ts";
import { GraphSession } from "../graph/session.ts";
import { longestPiece, piecesOf, shortestPart } from "./attention/prefill-pieces.ts";
import { type Checkpoint, reopenCheckpoint } from "./checkpoint/checkpoint.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { buildDecoderGraph } from "./decoder-graph.ts";
import { Embedding } from "./embedding.ts";
import { KvPool } from "./kv-pool.ts";
import { INT4_ROWS, int4RowsDifferAlone } from "./linear/int4-probe.ts";
import type { WeightType } from "./linear/linear.ts";
import type { AdapterHost } from "./lora/adapter-host.ts";
import { LoraSlots } from "./lora/lora-slots.ts";
import { distinctRopes, RotaryTable } from "./rotary-table.ts";
import type { Chunk, Runner } from "./runner.ts";
import { StepInputs, wantedRows } from "./step-inputs.ts";
import { dataOf, stepOutputs } from "./step-outputs.ts";
import { type WeightOptions, weightOptions } from "./weight-source.ts";

export interface DecoderRunnerOptions {
  weightType: WeightType;
  threads: number;
  positionsPerBlock: number;
  numBlocks: number;
  /** The context length. */
  maxPositions: number;
  /** Whether LongRoPE uses its long factors, for every position; default: its short ones. */
  longFactors?: boolean;
  maxLoras: number;
  maxLoraRank: number;
  /** Builds the graph for adapters at once. Otherwise the first adapter makes the runner build it again. */
  adaptersFromStart: boolean;
  /** The embedding, if other engines of this process use it too: embedding.ts. */
  embedding?: SharedArrayBuffer;
}

/** With the weight options of this machine. */
type RunnerOptions = DecoderRunnerOptions & WeightOptions;

/** A companion row without past or blocks. Nothing of it is kept. */
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
  readonly positionsPerBlock: number;
  readonly numBlocks: number;
  readonly adapters: AdapterHost;
  readonly #config: ModelConfig;
  readonly #checkpoint: Pick<Checkpoint, "path" | "identity">;
  readonly #options: RunnerOptions;
  readonly #pool: KvPool;
  readonly #inputs: StepInputs;
  readonly #int4RowsDiffer: boolean;
  #session: GraphSession;
  /** Whether the graph has inputs for adapters. They cost a little in every step, so it gets them with the first adapter. */
  #takesAdapters: boolean;

  private constructor(checkpoint: Checkpoint, options: RunnerOptions, session: GraphSession, int4RowsDiffer: boolean) {
    const { config } = checkpoint;
    this.#config = config;
    this.#checkpoint = { path: checkpoint.path, identity: checkpoint.identity };
    this.#options = options;
    this.#session = session;
    this.#int4RowsDiffer = int4RowsDiffer;
    this.#takesAdapters = options.adaptersFromStart;
    this.vocabSize = config.vocabSize;
    this.maxPositions = options.maxPositions;
    this.positionsPerBlock = options.positionsPerBlock;
    this.numBlocks = options.numBlocks;
    this.#pool = new KvPool(config, options.positionsPerBlock, options.numBlocks);
    const slots = new LoraSlots(config, options.maxLoras, options.maxLoraRank);
    this.adapters = {
      maxLoras: slots.maxLoras,
      maxLoraRank: slots.maxLoraRank,
      load: async (folder) => {
        const loaded = await slots.load(folder);
        try {
          if (!this.#takesAdapters) await this.#takeAdapters();
        } catch (error) {
          await slots.unload(loaded.version);
          throw error;
        }
        return loaded;
      },
      unload: (version) => slots.unload(version),
      slotOf: (version) => slots.slotOf(version),
    };
    const ropes = distinctRopes(config.layers).specs;
    this.#inputs = new StepInputs({
      config,
      pool: this.#pool,
      embedding: Embedding.of(checkpoint, options.embedding),
      rotary: ropes.map((spec) => {
        return new RotaryTable(spec, config.headDim, options.maxPositions, options.longFactors);
      }),
      adapters: slots,
      shortestPart: shortestPart(options.threads),
      differAlone: (rows, adapted) => this.#differAlone(rows, adapted),
    });
  }

  /** Reads the weights and builds the graph. The checkpoint may be closed afterwards. */
  static async create(checkpoint: Checkpoint, wanted: DecoderRunnerOptions): Promise<DecoderRunner> {
    const options = { ...wanted, ...(await weightOptions(wanted.weightType)) };
    const session = await createSession(checkpoint, options, options.adaptersFromStart);
    const int4RowsDiffer = options.weightType === "int4" && (await int4RowsDifferAlone());
    return new DecoderRunner(checkpoint, options, session, int4RowsDiffer);
  }

  async forward(chunks: readonly Chunk[]): Promise<Float32Array[]> {
    const decoding = chunks.filter((chunk) => chunk.tokens.length === 1);
    const longest = longestPiece(this.#options.threads);
    const pieces = chunks
      .filter((chunk) => chunk.tokens.length > 1)
      .map((chunk) => piecesOf(chunk, this.positionsPerBlock, longest));
    const logits = new Map<Chunk, Float32Array>();
    // Decode rows run with the first piece.
    for (const [i, piece] of (pieces.length === 0 ? [null] : pieces.flat()).entries()) {
      for (const [ran, rows] of await this.#run(i === 0 ? decoding : [], piece)) logits.set(ran, rows);
    }
    let next = 0;
    return chunks.map((chunk) => {
      const ran = chunk.tokens.length === 1 ? [chunk] : pieces[next++]!;
      return joinRows(ran.map((piece) => logits.get(piece)!));
    });
  }

  copyBlock(from: number, to: number): void {
    this.#pool.copyBlock(from, to);
  }

  clearBlock(block: number, first: number): void {
    this.#pool.clearFrom(block, first);
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  async #run(decoding: readonly Chunk[], prefill: Chunk | null): Promise<[Chunk, Float32Array][]> {
    const rowsOfOne = this.#hasLoneRow(decoding, prefill) ? [...decoding, companion] : decoding;
    const feeds = this.#inputs.prepare(rowsOfOne, prefill, this.#takesAdapters);
    const { wanted, into, remember } = stepOutputs(this.#config, this.#pool, rowsOfOne, prefill);
    const outputs = await this.#session.run(feeds, wanted, into);
    remember(outputs);
    const chunks = prefill === null ? rowsOfOne : [...rowsOfOne, prefill];
    const rows = dataOf(outputs, "logits");
    let row = 0;
    return chunks.map((chunk) => {
      const first = row;
      row += wantedRows(chunk);
      return [chunk, rows.subarray(first * this.vocabSize, row * this.vocabSize)];
    });
  }

  /** Whether a row alone would get other bits than beside others. Then it gets a companion. */
  #hasLoneRow(decoding: readonly Chunk[], prefill: Chunk | null): boolean {
    const rows = decoding.length + (prefill?.tokens.length ?? 0);
    return this.#differAlone(rows, rows === 1 && decoding[0]!.adapterSlot !== 0);
  }

  #differAlone(rows: number, adapted: boolean): boolean {
    if (this.#int4RowsDiffer && rows % INT4_ROWS === 1) return true;
    // With adapters that is so on every machine (see attention/paged-attention.ts).
    return rows === 1 && adapted;
  }

  /** Builds the graph again with inputs for adapters. No step runs meanwhile. If it fails, the old graph stays. */
  async #takeAdapters(): Promise<void> {
    const { path, identity } = this.#checkpoint;
    const checkpoint = reopenCheckpoint(path, identity);
    try {
      const session = await createSession(checkpoint, this.#options, true);
      await this.#session.close();
      this.#session = session;
      this.#takesAdapters = true;
    } finally {
      checkpoint.close();
    }
  }
}

async function createSession(checkpoint: Checkpoint, options: RunnerOptions, lora: boolean): Promise<GraphSession> {
  const { weightType, digitSteps, positionsPerBlock, threads } = options;
  const graph = buildDecoderGraph(checkpoint, { weightType, digitSteps, positionsPerBlock, lora });
  return GraphSession.create(graph, { threads });
}
