// What the step loop needs from a model: run some tokens of some sequences, give back logits.
// Implemented by model/decoder-runner (ONNX) and by the fake models in test/. Synchronous inside one step: the
// engine thread does nothing else meanwhile. Key/value memory belongs to the runner's KvPool; the scheduler owns
// the decisions (who holds which blocks), the pool owns the bytes.

/** One contiguous piece of one sequence, run in this step. */
export interface Chunk {
  /** Token ids to run, at absolute positions start .. start + tokens.length - 1. */
  tokens: Int32Array;
  start: number;
  /** Physical blocks that hold positions 0 .. start + tokens.length - 1, in order; the last may be partly filled. */
  blocks: Int32Array;
  /** Slot of the adapter in the runner (0 = base model). */
  adapterSlot: number;
  /** Which rows of logits to return: none (a prefill chunk that is not the last), the last, or all rows. */
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
   * Run all chunks. Returns one array per chunk: [rows, vocab] row-major, rows as `logits` asked (possibly empty).
   * The arrays are only valid until the next call.
   */
  forward(chunks: readonly Chunk[]): Promise<Float32Array[]>;
  /** Copy whole blocks inside the pool (all layers): prefix-cache hits and shared prefills. */
  copyBlock(from: number, to: number): void;
  /** Another sequence goes on at position `first` of a block: what lies there and behind it is not to be seen any more. */
  clearBlock(block: number, first: number): void;
}
