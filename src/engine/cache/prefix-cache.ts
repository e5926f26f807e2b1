// Finds blocks whose keys and values can be reused: the same tokens after the same tokens, under the same adapter
// content and salt. Tokens are chained in links of a fixed size. A block holds one link or several, and only full links
// are found. A link's digest is the SHA-256 of its parent's digest and its tokens. The root of a chain hashes adapter
// version and salt, so chains of different salts or adapters never meet. Every hit also compares the tokens and the
// parent. There is one entry per digest and one per place in a block, so the pool bounds the size. A block that holds a
// link also holds the links before it in that block, even if another block is the one found for them. The cache keeps
// no order and frees nothing: the allocator evicts the least recently used block and calls `forget`.

import { hash } from "node:crypto";

interface Entry {
  digest: string;
  parent: string;
  tokens: Int32Array; // [linkSize]
  block: number;
}

export interface Lookup {
  digest: string;
  /** The block that holds this content, or null. */
  block: number | null;
}

/** Parent digest of first links. Null and the empty string differ, and no two pairs of fields give the same text. */
export function cacheRoot(adapter: string | null, salt: string | null): string {
  return hash("sha256", JSON.stringify(["prefix", adapter, salt]), "binary");
}

/** Digest of a link: a binary string of 32 characters. */
export function chainDigest(parent: string, tokens: Int32Array): string {
  const bytes = Buffer.allocUnsafe(32 + tokens.byteLength);
  bytes.write(parent, 0, "latin1");
  bytes.set(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength), 32);
  return hash("sha256", bytes, "binary");
}

export class PrefixCache {
  readonly #byDigest = new Map<string, Entry>();
  /** By the link's place in its block. */
  readonly #byBlock = new Map<number, Map<number, Entry>>();

  get size(): number {
    return this.#byDigest.size;
  }

  /** The block with the content `tokens` after the chain `parent`, if any. */
  lookup(parent: string, tokens: Int32Array): Lookup {
    const digest = chainDigest(parent, tokens);
    const entry = this.#byDigest.get(digest);
    const hit = entry !== undefined && entry.parent === parent && sameTokens(entry.tokens, tokens);
    return { digest, block: hit ? entry.block : null };
  }

  /** `block` now holds this link at `place`. Does nothing if another block is already found for it. */
  remember(digest: string, parent: string, tokens: Int32Array, block: number, place: number): void {
    if (this.#byDigest.has(digest)) return;
    const links = this.#byBlock.get(block) ?? new Map<number, Entry>();
    if (links.has(place)) throw new Error(`block ${block} already has cached content at ${place}`);
    const entry = { digest, parent, tokens: tokens.slice(), block };
    this.#byDigest.set(digest, entry);
    this.#byBlock.set(block, links.set(place, entry));
  }

  /** Whether lookups can return this block for a link at place `from` or later. */
  holds(block: number, from = 0): boolean {
    const places = this.#byBlock.get(block)?.keys() ?? [];
    for (const place of places) if (place >= from) return true;
    return false;
  }

  /** Forgets the links of `block` from place `from` on: they are about to be overwritten. */
  forget(block: number, from = 0): void {
    const links = this.#byBlock.get(block);
    if (links === undefined) throw new Error(`block ${block} has no cached content`);
    for (const [place, { digest }] of links) {
      if (place < from) continue;
      links.delete(place);
      this.#byDigest.delete(digest);
    }
    if (links.size === 0) this.#byBlock.delete(block);
  }

  /** Throws unless both indexes agree and every digest matches its content. */
  checkIntegrity(): void {
    let indexed = 0;
    for (const [block, links] of this.#byBlock) {
      if (links.size === 0) throw new Error(`block ${block} is indexed without content`);
      indexed += links.size;
      for (const entry of links.values()) {
        if (entry.block !== block || this.#byDigest.get(entry.digest) !== entry) {
          throw new Error(`cached block ${block} is not indexed`);
        }
      }
    }
    if (indexed !== this.#byDigest.size) throw new Error("prefix-cache indexes differ in size");
    for (const [digest, entry] of this.#byDigest) {
      if (entry.digest !== digest || chainDigest(entry.parent, entry.tokens) !== digest) {
        throw new Error(`cached block ${entry.block} is filed under a wrong digest`);
      }
    }
  }
}

function sameTokens(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
