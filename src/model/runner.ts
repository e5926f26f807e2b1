// What the step loop needs from a model: run some tokens of some sequences and return logits. decoder-runner.ts (ONNX)
// and the tests' fakes implement it. The engine thread does nothing else during a forward. The engine decides who holds
// which block; the runner owns the memory.

/** One contiguous piece of one sequence, run in this step. */
export interface Chunk {
  /** Token ids to run, at absolute positions start .. start + tokens.length - 1. */
  tokens: Int32Array;
  start: number;
  /** Physical blocks that hold positions 0 .. start + tokens.length - 1, in order; the last may be partly filled. */
  blocks: Int32Array;
  /** Slot of the adapter in the runner (0 = base model). */
  adapterSlot: number;
  /** Which rows of logits to return: none (a prefill chunk that is not the last), the last one, or all. */
  logits: "none" | "last" | "all";
}

export interface Runner {
  readonly vocabSize: number;
  readonly maxPositions: number;
  /** Positions per block of key/value memory. */
  readonly positionsPerBlock: number;
  /** Number of blocks in the pool: the KV budget. */
  readonly numBlocks: number;
  /**
   * Runs all chunks. Returns one array per chunk, possibly empty: [rows, vocab] row-major, rows as `logits` asks. The arrays
   * are valid only until the next call.
   */
  forward(chunks: readonly Chunk[]): Promise<Float32Array[]>;
  /** Copies a whole block of all layers, for prefix-cache hits and shared prefills. */
  copyBlock(from: number, to: number): void;
  /** Clears a block from position `first` on: another sequence continues there and must not see the old content. */
  clearBlock(block: number, first: number): void;
}
