// Finds blocks whose keys and values can be reused: the same tokens after the same tokens, under the same adapter
// content and salt. Only full blocks. A block's digest is SHA-256 over its parent's digest and its tokens; the root
// of a chain hashes adapter version and salt, so chains of different salts or adapters never meet. Tokens and parent
// are compared on every hit as well. One entry per digest and one per block, so the size is bounded by the pool.
// It keeps no order and frees nothing: the allocator evicts (least recently used) and calls `forget`.

import { hash } from "node:crypto";

interface Entry {
  digest: string;
  parent: string;
  tokens: Int32Array; // [blockSize]
  block: number;
}

export interface Lookup {
  digest: string;
  /** The block that holds this content, or null. */
  block: number | null;
}

/** Parent digest of first blocks. Null and the empty string differ, and no pair of fields can imitate another. */
export function cacheRoot(adapter: string | null, salt: string | null): string {
  return hash("sha256", JSON.stringify(["prefix", adapter, salt]), "binary");
}

/** Digest of a block: binary string of 32 characters. */
export function chainDigest(parent: string, tokens: Int32Array): string {
  const bytes = Buffer.allocUnsafe(32 + tokens.byteLength);
  bytes.write(parent, 0, "latin1");
  bytes.set(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength), 32);
  return hash("sha256", bytes, "binary");
}

export class PrefixCache {
  private readonly byDigest = new Map<string, Entry>();
  private readonly byBlock = new Map<number, Entry>();

  get size(): number {
    return this.byDigest.size;
  }

  /** The block with the content `tokens` after the chain `parent`, if any. */
  lookup(parent: string, tokens: Int32Array): Lookup {
    const digest = chainDigest(parent, tokens);
    const entry = this.byDigest.get(digest);
    const hit = entry !== undefined && entry.parent === parent && sameTokens(entry.tokens, tokens);
    return { digest, block: hit ? entry.block : null };
  }

  /** `block` now holds this content. If another block already does, that one stays the answer and nothing changes. */
  remember(digest: string, parent: string, tokens: Int32Array, block: number): void {
    if (this.byDigest.has(digest)) return;
    if (this.byBlock.has(block)) throw new Error(`block ${block} already has cached content`);
    const entry = { digest, parent, tokens: tokens.slice(), block };
    this.byDigest.set(digest, entry);
    this.byBlock.set(block, entry);
  }

  /** Whether lookups can answer with this block. */
  holds(block: number): boolean {
    return this.byBlock.has(block);
  }

  /** The content of `block` is about to be overwritten. */
  forget(block: number): void {
    const entry = this.byBlock.get(block);
    if (entry === undefined) throw new Error(`block ${block} has no cached content`);
    this.byBlock.delete(block);
    this.byDigest.delete(entry.digest);
  }

  /** Throws unless both indexes agree and every digest is that of its content. */
  checkIntegrity(): void {
    if (this.byBlock.size !== this.byDigest.size) throw new Error("prefix-cache indexes differ in size");
    for (const [digest, entry] of this.byDigest) {
      if (entry.digest !== digest || chainDigest(entry.parent, entry.tokens) !== digest) {
        throw new Error(`cached block ${entry.block} is filed under a wrong digest`);
      }
      if (this.byBlock.get(entry.block) !== entry) throw new Error(`cached block ${entry.block} is not indexed`);
    }
  }
}

function sameTokens(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
