// Blocks seen from a sequence: attach (with prefix-cache hits), grow, fork, commit, release. Ties the allocator, the
// prefix cache and the runner's block copies together. Full blocks are never written again, which makes the hit rule
// simple: a cached block without an owner is taken over as it is (its entry stays, others may still hit it), a block
// that a running sequence holds is copied, because the runner reads each block for one owner only.

import type { Runner } from "../runner.ts";
import type { Sequence } from "../sequence.ts";
import { BlockAllocator } from "./block-allocator.ts";
import { PrefixCache } from "./prefix-cache.ts";

export class KvCache {
  readonly blockSize: number;
  private readonly runner: Runner;
  private readonly allocator: BlockAllocator;
  /** null = prefix caching is off. */
  private readonly prefixes: PrefixCache | null;

  constructor(runner: Runner, prefixCaching: boolean) {
    this.runner = runner;
    this.blockSize = runner.blockSize;
    this.prefixes = prefixCaching ? new PrefixCache() : null;
    this.allocator = new BlockAllocator(runner.numBlocks, (block) => this.prefixes?.forget(block));
  }

  get available(): number {
    return this.allocator.available;
  }

  /** Fraction of the pool held by running sequences, 0..1. */
  get usage(): number {
    return this.allocator.held / this.allocator.numBlocks;
  }

  blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.blockSize);
  }

  /**
   * Give a sequence without blocks room for all its known tokens, reusing cached ones when `readCache`. At least one
   * token stays to be computed, since its logits are wanted. Sets `computed`; returns it.
   * Needs blocksFor(tokens) available blocks, hits or not.
   */
  attach(sequence: Sequence, readCache: boolean): number {
    const hits = readCache ? this.findPrefix(sequence) : [];
    // Take over the ownerless hits first: taking blocks below may evict whatever is still cached.
    const mine = hits.map((block) => {
      if (!this.allocator.isCached(block)) return false;
      this.allocator.adopt(block, sequence.number);
      return true;
    });
    for (const [i, hit] of hits.entries()) {
      sequence.blocks.push(mine[i] ? hit : this.copyOf(hit, sequence));
    }
    sequence.computed = hits.length * this.blockSize;
    if (!this.grow(sequence)) throw new Error("attach without enough available blocks");
    return sequence.computed;
  }

  /** Make room for all known tokens. False, with nothing taken, when the pool cannot. */
  grow(sequence: Sequence): boolean {
    const missing = this.blocksFor(sequence.tokens.length) - sequence.blocks.length;
    if (missing <= 0) return true;
    if (missing > this.allocator.available) return false;
    for (let i = 0; i < missing; i++) sequence.blocks.push(this.allocator.take(sequence.number));
    return true;
  }

  /** Start `follower` where `leader` stands: copies of all its blocks, the partly filled one too. */
  fork(leader: Sequence, follower: Sequence): void {
    const used = this.blocksFor(leader.computed);
    for (const block of leader.blocks.view(0, used)) follower.blocks.push(this.copyOf(block, follower));
    follower.computed = leader.computed;
    follower.digests = leader.digests.slice();
  }

  /** Positions below `computed` are final: full blocks among them become findable. */
  commit(sequence: Sequence): void {
    if (this.prefixes === null) return;
    const { digests, tokens, request } = sequence;
    for (let i = digests.length; (i + 1) * this.blockSize <= sequence.computed; i++) {
      const parent = digests[i - 1] ?? request.cacheRoot;
      const content = tokens.view(i * this.blockSize, (i + 1) * this.blockSize);
      const { digest, block } = this.prefixes.lookup(parent, content);
      if (block === null) this.prefixes.remember(digest, parent, content, sequence.blocks.at(i));
      digests.push(digest);
    }
  }

  /** Take all blocks back. Findable ones stay cached, the end of the chain to be evicted first. */
  release(sequence: Sequence): void {
    for (let i = sequence.blocks.length - 1; i >= 0; i--) {
      const block = sequence.blocks.at(i);
      this.allocator.release(block, sequence.number, this.prefixes?.holds(block) ?? false);
    }
    sequence.blocks.clear();
    sequence.digests = [];
    sequence.computed = 0;
  }

  checkIntegrity(running: Iterable<Sequence>): void {
    const holdings: [number, Int32Array][] = [];
    for (const s of running) holdings.push([s.number, s.blocks.view(0, s.blocks.length)]);
    this.allocator.checkIntegrity(holdings);
    this.prefixes?.checkIntegrity();
    for (let block = 0; block < this.allocator.numBlocks; block++) {
      if (this.allocator.isCached(block) && !this.prefixes?.holds(block)) {
        throw new Error(`block ${block} is cached but no lookup can find it`);
      }
    }
  }

  /** Blocks that hold the longest known prefix, in order; fills `digests` for them. */
  private findPrefix(sequence: Sequence): number[] {
    const found: number[] = [];
    if (this.prefixes === null) return found;
    const { tokens, digests } = sequence;
    for (let end = this.blockSize; end < tokens.length; end += this.blockSize) {
      const parent = digests[digests.length - 1] ?? sequence.request.cacheRoot;
      const { digest, block } = this.prefixes.lookup(parent, tokens.view(end - this.blockSize, end));
      if (block === null) break;
      digests.push(digest);
      found.push(block);
    }
    return found;
  }

  private copyOf(block: number, owner: Sequence): number {
    const copy = this.allocator.take(owner.number);
    this.runner.copyBlock(block, copy);
    return copy;
  }
}
