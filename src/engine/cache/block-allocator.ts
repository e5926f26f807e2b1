// Knows who has which block of the KV pool. A block is in exactly one state: free, held by one running sequence, or
// cached (held by nobody, content still valid, evictable). Deals in block numbers only. The runner owns the bytes, and
// the prefix cache, which hears of every eviction, knows what a cached block contains.

const FREE = -1;
const CACHED = -2;

export class BlockAllocator {
  readonly numBlocks: number;
  /** FREE, CACHED or the number of the holding sequence; Float64 so that sequence numbers never wrap. [numBlocks] */
  readonly #state: Float64Array;
  readonly #free: number[] = [];
  /** Cached blocks, least recently released first. */
  readonly #cached = new Set<number>();
  readonly #onEvict: (block: number) => void;

  constructor(numBlocks: number, onEvict: (block: number) => void) {
    this.numBlocks = numBlocks;
    this.#state = new Float64Array(numBlocks).fill(FREE);
    for (let block = numBlocks - 1; block >= 0; block--) this.#free.push(block);
    this.#onEvict = onEvict;
  }

  /** Blocks that `take` can still deliver: free ones and evictable ones. */
  get available(): number {
    return this.#free.length + this.#cached.size;
  }

  get held(): number {
    return this.numBlocks - this.available;
  }

  isCached(block: number): boolean {
    return this.#state[block] === CACHED;
  }

  /** A block with no content for `owner`: a free one, else the least recently used cached one. */
  take(owner: number): number {
    let block = this.#free.pop();
    if (block === undefined) {
      block = this.#cached.values().next().value;
      if (block === undefined) throw new Error("no block left: the caller must check `available` first");
      this.#cached.delete(block);
      this.#onEvict(block);
    }
    this.#state[block] = owner;
    return block;
  }

  /** Gives a cached block and its content to `owner`. */
  adopt(block: number, owner: number): void {
    if (!this.#cached.delete(block)) throw new Error(`block ${block} is not cached`);
    this.#state[block] = owner;
  }

  /** Takes a block back from `owner`. With `keep` it becomes cached, as the most recently used one; otherwise free. */
  release(block: number, owner: number, keep: boolean): void {
    if (this.#state[block] !== owner) throw new Error(`block ${block} is not held by sequence ${owner}`);
    this.#state[block] = keep ? CACHED : FREE;
    if (keep) this.#cached.add(block);
    else this.#free.push(block);
  }

  /** Throws unless every block is in exactly one state and `holdings` (sequence number, its blocks) are all held. */
  checkIntegrity(holdings: Iterable<readonly [number, Int32Array]>): void {
    const seen = new Uint8Array(this.numBlocks);
    const see = (block: number, expected: number): void => {
      if (this.#state[block] !== expected) throw new Error(`block ${block} is ${this.#state[block]}, not ${expected}`);
      if (seen[block] === 1) throw new Error(`block ${block} is in two places`);
      seen[block] = 1;
    };
    for (const block of this.#free) see(block, FREE);
    for (const block of this.#cached) see(block, CACHED);
    for (const [owner, blocks] of holdings) for (const block of blocks) see(block, owner);
    const lost = seen.indexOf(0);
    if (lost >= 0) throw new Error(`block ${lost} is nowhere (state ${this.#state[lost]})`);
  }
}
