// Guesses what a replica's prefix cache holds: the prompts that were sent there, as chains of block hashes. A hash
// covers its block and everything before it. Hashes have 53 bits and are not cryptographic: a collision sends a request
// to a replica that is a little slower for it, nothing more.

/** Blocks remembered per replica: a million tokens in blocks of 16. */
const MOST_BLOCKS = 65_536;

export interface PromptBlocks {
  /** One hash per full block. */
  chain: readonly number[];
  /** Hash of the first block, or of the whole prompt if it is shorter than a block. */
  first: number;
}

/** `root`: what else must be equal for a prefix to be shared. */
export function promptBlocks(root: string, tokens: readonly number[], blockSize: number): PromptBlocks {
  const chain: number[] = [];
  let hash = textHash(root);
  for (const [i, token] of tokens.entries()) {
    hash = mixed(hash, token);
    if ((i + 1) % blockSize === 0) chain.push(hash);
  }
  return { chain, first: chain[0] ?? hash };
}

export function textHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = mixed(hash, text.charCodeAt(i));
  return hash;
}

/** A hash of 53 bits from one of 53 bits and a number of 32. */
export function mixed(hash: number, value: number): number {
  let low = Math.imul((hash | 0) ^ value, 0x85ebca6b);
  low ^= low >>> 15;
  let high = Math.imul(Math.floor(hash / 2 ** 32) ^ low ^ (value << 7), 0xc2b2ae35);
  high ^= high >>> 13;
  low = Math.imul(low ^ high, 0x27d4eb2f);
  return (high >>> 11) * 2 ** 32 + ((low ^ (low >>> 16)) >>> 0);
}

export class PrefixIndex {
  readonly #most: number;
  /** Least recently used first. */
  readonly #hashes = new Set<number>();

  constructor(most = MOST_BLOCKS) {
    this.#most = most;
  }

  /** How many blocks at the beginning of the chain are known. */
  matched(chain: readonly number[]): number {
    const end = chain.findIndex((hash) => !this.#hashes.has(hash));
    return end < 0 ? chain.length : end;
  }

  add(chain: readonly number[]): void {
    // From the end, so that the beginning of a chain is forgotten last. Ends are of no use without it.
    for (const hash of chain.slice(0, this.#most).reverse()) {
      this.#hashes.delete(hash);
      this.#hashes.add(hash);
    }
    for (const hash of this.#hashes) {
      if (this.#hashes.size <= this.#most) break;
      this.#hashes.delete(hash);
    }
  }

  clear(): void {
    this.#hashes.clear();
  }
}
