// Runs steps of a checkpoint's decoder on ONNX Runtime: fills the graph's inputs (step-inputs.ts), runs it, and stores
// the new keys and values (key-values.ts). A step with long chunks takes several runs.

import type { Tensor } from "onnxruntime-node";
import { joinRows } from "../graph/join-rows.ts";
import { hasRuntimeProducts } from "../graph/native/runtime-products.ts";
import { floats, GraphSession, hasKernels } from "../graph/session.ts";
import { type CacheType, cacheTypeFor } from "./attention/cache-type.ts";
import { GraphKeyValues } from "./attention/graph-key-values.ts";
import { KernelKeyValues } from "./attention/kernel-key-values.ts";
import { type Checkpoint, reopenCheckpoint } from "./checkpoint/checkpoint.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { buildDecoderGraph } from "./decoder-graph.ts";
import { Embedding } from "./embedding.ts";
import type { KeyValues, Piece } from "./key-values.ts";
import { INT4_ROWS, int4RowsDifferAlone } from "./linear/int4-probe.ts";
import type { WeightType } from "./linear/linear.ts";
import type { AdapterHost } from "./lora/adapter-host.ts";
import { LoraSlots } from "./lora/lora-slots.ts";
import { distinctRopes, RotaryTable } from "./rotary-table.ts";
import type { Chunk, Runner } from "./runner.ts";
import { StepInputs, wantedRows } from "./step-inputs.ts";
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

/** With what this machine makes of the weight type. */
type RunnerOptions = DecoderRunnerOptions & WeightOptions & { cacheType: CacheType };

/** Memory for the logits of this many rows is kept between steps. */
const KEPT_ROWS = 64;

/** A companion row without past or blocks. Nothing of it is kept. */
const companion: Piece = {
  tokens: Int32Array.of(0),
  start: 0,
  blocks: new Int32Array(0),
  adapterSlot: 0,
  logits: "none",
  of: -1,
};

export class DecoderRunner implements Runner {
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly positionsPerBlock: number;
  readonly numBlocks: number;
  readonly adapters: AdapterHost;
  readonly #checkpoint: Pick<Checkpoint, "path" | "identity">;
  readonly #options: RunnerOptions;
  readonly #keyValues: KeyValues;
  readonly #inputs: StepInputs;
  readonly #int4RowsDiffer: boolean;
  #session: GraphSession;
  /** Memory for the logits of each run of a step. */
  readonly #logits: Float32Array[] = [];
  /** Whether the graph has inputs for adapters. They cost a little in every step, so it gets them with the first adapter. */
  #takesAdapters: boolean;

  private constructor(checkpoint: Checkpoint, options: RunnerOptions, session: GraphSession, int4RowsDiffer: boolean) {
    const { config } = checkpoint;
    this.#checkpoint = { path: checkpoint.path, identity: checkpoint.identity };
    this.#options = options;
    this.#session = session;
    this.#int4RowsDiffer = int4RowsDiffer;
    this.#takesAdapters = options.adaptersFromStart;
    this.vocabSize = config.vocabSize;
    this.maxPositions = options.maxPositions;
    this.positionsPerBlock = options.positionsPerBlock;
    this.numBlocks = options.numBlocks;
    this.#keyValues = keyValuesOf(config, options);
    session.keep(this.#keyValues.kept);
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
      embedding: Embedding.of(checkpoint, options.embedding),
      rotary: ropes.map((spec) => {
        return new RotaryTable(spec, config.headDim, options.maxPositions, options.longFactors);
      }),
      adapters: slots.factors,
      differAlone: (rows, adapted) => this.#differAlone(rows, adapted),
    });
  }

  /** Reads the weights and builds the graph. The checkpoint may be closed afterwards. */
  static async create(checkpoint: Checkpoint, wanted: DecoderRunnerOptions): Promise<DecoderRunner> {
    const cacheType = cacheTypeFor(wanted.weightType !== "float32", hasKernels);
    const options = { ...wanted, ...(await weightOptions(wanted.weightType)), cacheType };
    const session = await createSession(checkpoint, options, options.adaptersFromStart);
    const int4RowsDiffer = !hasKernels && options.weightType === "int4" && (await int4RowsDifferAlone());
    return new DecoderRunner(checkpoint, options, session, int4RowsDiffer);
  }

  async forward(chunks: readonly Chunk[]): Promise<Float32Array[]> {
    const logits: Float32Array[][] = chunks.map(() => []);
    for (const [index, run] of this.#keyValues.runsOf(chunks).entries()) {
      for (const [piece, rows] of await this.#run(run, index)) if (piece !== companion) logits[piece.of]!.push(rows);
    }
    return logits.map(joinRows);
  }

  copyBlock(from: number, to: number): void {
    this.#keyValues.copyBlock(from, to);
  }

  clearBlock(block: number, first: number): void {
    this.#keyValues.clearBlock(block, first);
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  /** `index`: which run of the step it is. */
  async #run(run: readonly Piece[], index: number): Promise<[Piece, Float32Array][]> {
    const pieces = this.#hasLoneRow(run) ? [companion, ...run] : run;
    const { feeds, outputs, into, remember } = this.#keyValues.prepare(pieces);
    Object.assign(feeds, this.#inputs.prepare(pieces, this.#takesAdapters));
    const logits = this.#logitsOf(index, feeds.wanted!.dims[0]!);
    const results = await this.#session.run(feeds, ["logits", ...outputs], { ...into, logits });
    remember(results);
    const rows = results.logits!.data as Float32Array;
    let row = 0;
    return pieces.map((piece) => {
      const first = row;
      row += wantedRows(piece);
      return [piece, rows.subarray(first * this.vocabSize, row * this.vocabSize)];
    });
  }

  /**
   * Memory for the logits of a run. Steps share it, because fresh memory costs more than filling it. Many rows, which a prompt's
   * log-probabilities need, get memory of their own that does not stay.
   */
  #logitsOf(run: number, rows: number): Tensor {
    const size = rows * this.vocabSize;
    let memory = this.#logits[run];
    if (memory === undefined || memory.length < size) {
      memory = new Float32Array(size);
      if (rows <= KEPT_ROWS) this.#logits[run] = memory;
    }
    return floats(memory.subarray(0, size), [rows, 1, this.vocabSize]);
  }

  /** Whether a row alone would get other bits than beside others. Then it gets a companion. */
  #hasLoneRow(run: readonly Piece[]): boolean {
    const rows = run.reduce((sum, piece) => sum + piece.tokens.length, 0);
    return this.#differAlone(rows, run[0]!.adapterSlot !== 0);
  }

  #differAlone(rows: number, adapted: boolean): boolean {
    if (this.#int4RowsDiffer && rows % INT4_ROWS === 1) return true;
    // With adapters in operations of the runtime that is so on every machine (see lora/graph-lora.ts).
    return !hasKernels && rows === 1 && adapted;
  }

  /** Builds the graph again with inputs for adapters. No step runs meanwhile. If it fails, the old graph stays. */
  async #takeAdapters(): Promise<void> {
    const { path, identity } = this.#checkpoint;
    const checkpoint = reopenCheckpoint(path, identity);
    try {
      const session = await createSession(checkpoint, this.#options, true);
      session.keep(this.#keyValues.kept);
      await this.#session.close();
      this.#session = session;
      this.#takesAdapters = true;
    } finally {
      checkpoint.close();
    }
  }
}

async function createSession(checkpoint: Checkpoint, options: RunnerOptions, lora: boolean): Promise<GraphSession> {
  const { weightType, digits, positionsPerBlock, cacheType, threads } = options;
  const graph = buildDecoderGraph(checkpoint, { weightType, digits, positionsPerBlock, cacheType, lora });
  return GraphSession.create(graph, { threads, ownThreads: !hasRuntimeProducts(graph) });
}

function keyValuesOf(config: ModelConfig, options: RunnerOptions): KeyValues {
  const { positionsPerBlock, numBlocks, cacheType, threads } = options;
  if (hasKernels) return new KernelKeyValues(config, positionsPerBlock, numBlocks, cacheType, threads);
  return new GraphKeyValues(config, positionsPerBlock, numBlocks, threads);
}
