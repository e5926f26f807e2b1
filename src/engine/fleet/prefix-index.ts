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
  const hash = new RunningHash(root);
  for (let i = 0; i < tokens.length; i++) {
    hash.add(tokens[i]!);
    if ((i + 1) % blockSize === 0) chain.push(hash.value);
  }
  return { chain, first: chain[0] ?? hash.value };
}

/** Hashes a text, then numbers of 32 bits. Two lanes of 32 bits, neither of which forgets what it has seen. */
export class RunningHash {
  #a = 0x2545f491;
  #b = 0x1b873593;

  constructor(text: string) {
    for (let i = 0; i < text.length; i++) this.add(text.charCodeAt(i));
  }

  add(number: number): void {
    this.#a = Math.imul(this.#a ^ number, 0x9e3779b1);
    this.#a ^= this.#a >>> 15;
    this.#b = Math.imul(this.#b ^ number, 0x5f356495);
    this.#b ^= this.#b >>> 13;
  }

  /** 53 bits. */
  get value(): number {
    const a = Math.imul(this.#a ^ (this.#b >>> 7), 0x85ebca6b);
    const b = Math.imul(this.#b ^ (this.#a >>> 9), 0xc2b2ae35);
    return ((b ^ (b >>> 16)) >>> 11) * 2 ** 32 + ((a ^ (a >>> 16)) >>> 0);
  }
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
    // In bulk, because a set that was deleted from at the front takes long to find its first element.
    let excess = this.#hashes.size - this.#most;
    if (excess <= this.#most / 8) return;
    for (const hash of this.#hashes) {
      if (excess-- <= 0) break;
      this.#hashes.delete(hash);
    }
  }

  clear(): void {
    this.#hashes.clear();
  }
}
