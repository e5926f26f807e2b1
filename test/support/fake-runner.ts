// Fake models behind the Runner contract, with real block storage and strict checks. The "keys and values" of a position
// are its token, its position and its adapter. The logits of a row depend on everything stored in the blocks of positions
// 0..p. So a wrong copy, a lost block or a block shared by two owners changes the output, and a broken runner invariant
// throws. Imports only types, so that it also compiles to a file that a worker can run.

import type { Chunk, Runner } from "../../src/model/runner.ts";

/** Writes the logits that follow a history. tokens and adapterSlots: one per position; out: [vocab]. */
export type RowFunction = (tokens: Int32Array, adapterSlots: Int32Array, out: Float32Array) => void;

export interface FakeRunnerOptions {
  row: RowFunction;
  vocabSize?: number;
  maxPositions?: number;
  positionsPerBlock?: number;
  numBlocks?: number;
  /** Called before every forward. May throw, or return a promise to make the step take time. */
  before?: (chunks: readonly Chunk[]) => void | Promise<void>;
}

/** Storage per position. */
const TOKEN = 0;
const POSITION = 1;
const ADAPTER = 2;
const FIELDS = 3;

export class FakeRunner implements Runner {
  readonly vocabSize: number;
  readonly maxPositions: number;
  readonly positionsPerBlock: number;
  readonly numBlocks: number;
  /** [numBlocks, positionsPerBlock, FIELDS]; -1 = never written. */
  readonly #pool: Int32Array;
  readonly #row: RowFunction;
  readonly #before: FakeRunnerOptions["before"];
  #previous: Float32Array[] = [];
  forwards = 0;
  copies = 0;
  /** Prefixes that ended inside a block. */
  clears = 0;
  /** Tokens run so far, and the most in one step. */
  tokensRun = 0;
  largestStep = 0;

  constructor(options: FakeRunnerOptions) {
    this.vocabSize = options.vocabSize ?? 256;
    this.maxPositions = options.maxPositions ?? 512;
    this.positionsPerBlock = options.positionsPerBlock ?? 4;
    this.numBlocks = options.numBlocks ?? 64;
    this.#row = options.row;
    this.#before = options.before;
    this.#pool = new Int32Array(this.numBlocks * this.positionsPerBlock * FIELDS).fill(-1);
  }

  async forward(chunks: readonly Chunk[]): Promise<Float32Array[]> {
    await this.#before?.(chunks);
    this.#check(chunks);
    this.forwards++;
    const step = chunks.reduce((sum, chunk) => sum + chunk.tokens.length, 0);
    this.tokensRun += step;
    this.largestStep = Math.max(this.largestStep, step);
    // Logits are valid only until the next call. This makes later use visible.
    for (const rows of this.#previous) rows.fill(Number.NaN);
    this.#previous = chunks.map((chunk) => this.#run(chunk));
    return this.#previous;
  }

  copyBlock(from: number, to: number): void {
    if (from === to) throw new Error(`block ${from} copied onto itself`);
    const size = this.positionsPerBlock * FIELDS;
    this.#pool.copyWithin(to * size, from * size, (from + 1) * size);
    this.copies++;
  }

  clearBlock(block: number, first: number): void {
    if (!(first > 0 && first < this.positionsPerBlock)) throw new Error(`a block cleared from position ${first} on`);
    this.#pool.fill(
      -1,
      (block * this.positionsPerBlock + first) * FIELDS,
      (block + 1) * this.positionsPerBlock * FIELDS,
    );
    this.clears++;
  }

  #run(chunk: Chunk): Float32Array {
    const end = chunk.start + chunk.tokens.length;
    for (const [i, token] of chunk.tokens.entries()) {
      const at = this.#address(chunk, chunk.start + i);
      // A block that begins is cleared.
      if ((chunk.start + i) % this.positionsPerBlock === 0)
        this.#pool.fill(-1, at, at + this.positionsPerBlock * FIELDS);
      this.#pool[at + TOKEN] = token;
      this.#pool[at + POSITION] = chunk.start + i;
      this.#pool[at + ADAPTER] = chunk.adapterSlot;
    }
    const tokens = new Int32Array(end);
    const adapters = new Int32Array(end);
    for (let position = 0; position < end; position++) {
      const at = this.#address(chunk, position);
      if (this.#pool[at + POSITION] !== position) {
        throw new Error(`position ${position} reads a place that holds position ${this.#pool[at + POSITION]}`);
      }
      tokens[position] = this.#pool[at + TOKEN]!;
      adapters[position] = this.#pool[at + ADAPTER]!;
    }
    for (let position = end; position % this.positionsPerBlock !== 0; position++) {
      // A mask would hide it, unless it were NaN or infinite.
      if (this.#pool[this.#address(chunk, position) + POSITION] !== -1)
        throw new Error(`something lies behind position ${end - 1} in its block`);
    }
    const first = chunk.logits === "all" ? chunk.start : chunk.logits === "last" ? end - 1 : end;
    const rows = new Float32Array((end - first) * this.vocabSize);
    for (let p = first; p < end; p++) {
      const out = rows.subarray((p - first) * this.vocabSize, (p - first + 1) * this.vocabSize);
      this.#row(tokens.subarray(0, p + 1), adapters.subarray(0, p + 1), out);
    }
    return rows;
  }

  #address(chunk: Chunk, position: number): number {
    const block = chunk.blocks[Math.floor(position / this.positionsPerBlock)]!;
    return (block * this.positionsPerBlock + (position % this.positionsPerBlock)) * FIELDS;
  }

  #check(chunks: readonly Chunk[]): void {
    if (chunks.length === 0) throw new Error("a forward without chunks");
    const owners = new Set<number>();
    for (const { tokens, start, blocks, logits } of chunks) {
      const end = start + tokens.length;
      if (tokens.length === 0) throw new Error("an empty chunk");
      if (end > this.maxPositions) throw new Error(`position ${end - 1} is beyond the model's ${this.maxPositions}`);
      if (logits === "none" && tokens.length > 1 && end % this.positionsPerBlock !== 0)
        throw new Error(`a prefill chunk ends inside a block: ${end}`);
      if (blocks.length !== Math.ceil(end / this.positionsPerBlock))
        throw new Error(`${blocks.length} blocks for ${end} tokens`);
      for (const token of tokens) {
        if (token < 0 || token >= this.vocabSize) throw new Error(`token ${token} is outside the vocabulary`);
      }
      for (const block of blocks) {
        if (block < 0 || block >= this.numBlocks) throw new Error(`block ${block} is outside the pool`);
        if (owners.has(block)) throw new Error(`block ${block} is read for two owners in one step`);
        owners.add(block);
      }
    }
  }
}

/** Every token equally likely. */
export const uniformRow: RowFunction = (_tokens, _adapters, out) => {
  out.fill(0);
};

/** Pseudo-random logits in [-4, 4) that depend on every stored token, position and adapter. */
export const hashRow: RowFunction = (tokens, adapters, out) => {
  let h = 0x9e3779b9;
  for (let i = 0; i < tokens.length; i++) h = mix(mix(h ^ tokens[i]!) + adapters[i]! * 0x85ebca6b);
  for (let id = 0; id < out.length; id++) {
    h = mix(h + 0x6d2b79f5);
    out[id] = (h >>> 0) / 2 ** 29 - 4;
  }
};

/** The token that `next` names is far ahead of all others, which are equal. */
export function scriptedRow(next: (tokens: Int32Array) => number): RowFunction {
  return (tokens, _adapters, out) => {
    out.fill(0);
    out[next(tokens)] = 20;
  };
}

function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
