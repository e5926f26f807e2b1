// The blocks of a sequence: attach (with prefix-cache hits), grow, fork, commit, release. Ties together the allocator,
// the prefix cache and the runner's block copies. Full links are never written again, so the hit rule is simple. A
// cached block is taken over as it is; its entries stay, and others may still hit them. A block that a running sequence
// holds is copied, because the runner reads each block for one owner only. If a prefix ends inside a block, the
// sequence will write the rest: it gets a copy if the block has later links that others may want.

import type { Runner } from "../../model/runner.ts";
import type { SchedulingOptions } from "../scheduling.ts";
import type { Sequence } from "../sequence.ts";
import { BlockAllocator } from "./block-allocator.ts";
import { PrefixCache } from "./prefix-cache.ts";

export class KvCache {
  readonly positionsPerBlock: number;
  /** Tokens that the prefix cache finds together. A block holds one link or several. */
  readonly #linkSize: number;
  readonly #linksPerBlock: number;
  readonly #runner: Runner;
  readonly #allocator: BlockAllocator;
  /** null = prefix caching is off. */
  readonly #prefixes: PrefixCache | null;

  constructor(runner: Runner, { prefixCaching, linkSize }: Pick<SchedulingOptions, "prefixCaching" | "linkSize">) {
    this.#runner = runner;
    this.positionsPerBlock = runner.positionsPerBlock;
    this.#linkSize = linkSize ?? runner.positionsPerBlock;
    this.#linksPerBlock = this.positionsPerBlock / this.#linkSize;
    if (!Number.isInteger(this.#linksPerBlock)) {
      throw new Error(`links of ${this.#linkSize} tokens do not fill blocks of ${this.positionsPerBlock}`);
    }
    this.#prefixes = prefixCaching ? new PrefixCache() : null;
    this.#allocator = new BlockAllocator(runner.numBlocks, (block) => this.#prefixes?.forget(block));
  }

  get available(): number {
    return this.#allocator.available;
  }

  /** Fraction of the pool held by running sequences, 0..1. */
  get usage(): number {
    return this.#allocator.held / this.#allocator.numBlocks;
  }

  blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.positionsPerBlock);
  }

  /**
   * Gives a sequence without blocks room for all its known tokens, reusing at most `most` cached ones. Leaves at least one
   * token to compute, because its logits are needed. Sets and returns `computed`.
   * Needs blocksFor(tokens) available blocks, hits or not.
   */
  attach(sequence: Sequence, most: number): number {
    const { blocks: hits, links } = this.#findPrefix(sequence, Math.min(most, sequence.tokens.length - 1));
    const inLast = links % this.#linksPerBlock;
    const whole = inLast === 0 ? hits : hits.slice(0, -1);
    // Take over cached hits first: taking blocks below may evict what is still cached.
    const mine = whole.map((block) => {
      if (!this.#allocator.isCached(block)) return false;
      this.#allocator.adopt(block, sequence.number);
      return true;
    });
    const last = inLast === 0 ? null : this.#begun(hits.at(-1)!, inLast, sequence);
    for (const [i, hit] of whole.entries()) sequence.blocks.push(mine[i] ? hit : this.#copyOf(hit, sequence));
    if (last !== null) sequence.blocks.push(last);
    sequence.computed = links * this.#linkSize;
    if (!this.grow(sequence)) throw new Error("attach without enough available blocks");
    return sequence.computed;
  }

  /** Makes room for all known tokens. Returns false, and takes nothing, when the pool has too few blocks. */
  grow(sequence: Sequence): boolean {
    const missing = this.blocksFor(sequence.tokens.length) - sequence.blocks.length;
    if (missing <= 0) return true;
    if (missing > this.#allocator.available) return false;
    for (let i = 0; i < missing; i++) sequence.blocks.push(this.#allocator.take(sequence.number));
    return true;
  }

  /** Starts `follower` where `leader` is, with copies of all its blocks, the partly filled one included. */
  fork(leader: Sequence, follower: Sequence): void {
    const used = this.blocksFor(leader.computed);
    for (const block of leader.blocks.view(0, used)) follower.blocks.push(this.#copyOf(block, follower));
    follower.computed = leader.computed;
    follower.digests = leader.digests.slice();
  }

  /** Positions below `computed` are final, so full links among them can now be found. */
  commit(sequence: Sequence): void {
    if (this.#prefixes === null) return;
    const { digests, tokens, request, blocks } = sequence;
    for (let i = digests.length; (i + 1) * this.#linkSize <= sequence.computed; i++) {
      const parent = digests[i - 1] ?? request.cacheRoot;
      const content = tokens.view(i * this.#linkSize, (i + 1) * this.#linkSize);
      const { digest, block } = this.#prefixes.lookup(parent, content);
      const place = i % this.#linksPerBlock;
      if (block === null) {
        this.#prefixes.remember(digest, parent, content, blocks.at((i - place) / this.#linksPerBlock), place);
      }
      digests.push(digest);
    }
  }

  /** Takes all blocks back. Blocks that can be found stay cached; the end of the chain is evicted first. */
  release(sequence: Sequence): void {
    for (let i = sequence.blocks.length - 1; i >= 0; i--) {
      const block = sequence.blocks.at(i);
      this.#allocator.release(block, sequence.number, this.#prefixes?.holds(block) ?? false);
    }
    sequence.blocks.clear();
    sequence.digests = [];
    sequence.computed = 0;
  }

  checkIntegrity(running: Iterable<Sequence>): void {
    const holdings: [number, Int32Array][] = [];
    for (const s of running) holdings.push([s.number, s.blocks.view(0, s.blocks.length)]);
    this.#allocator.checkIntegrity(holdings);
    this.#prefixes?.checkIntegrity();
    for (let block = 0; block < this.#allocator.numBlocks; block++) {
      if (this.#allocator.isCached(block) && !this.#prefixes?.holds(block)) {
        throw new Error(`block ${block} is cached but no lookup can find it`);
      }
    }
  }

  /** The blocks of the longest known prefix of at most `most` tokens, in order, and its length in links. Fills in `digests`. */
  #findPrefix(sequence: Sequence, most: number): { blocks: number[]; links: number } {
    const blocks: number[] = [];
    const { tokens, digests } = sequence;
    let links = 0;
    for (let end = this.#linkSize; this.#prefixes !== null && end <= most; end += this.#linkSize) {
      const parent = digests[links - 1] ?? sequence.request.cacheRoot;
      const { digest, block } = this.#prefixes.lookup(parent, tokens.view(end - this.#linkSize, end));
      if (block === null) break;
      digests.push(digest);
      // The block that holds a link holds the links before it in that block too.
      blocks[Math.floor(links / this.#linksPerBlock)] = block;
      links++;
    }
    return { blocks, links };
  }

  /** A block for `owner` that begins with the first `links` links of `block` and is clear after them. */
  #begun(block: number, links: number, owner: Sequence): number {
    const mine = this.#allocator.isCached(block) ? this.#takeBegun(block, links, owner) : this.#copyOf(block, owner);
    this.#runner.clearBlock(mine, links * this.#linkSize);
    return mine;
  }

  /** The cached block itself if it has no later links or there is no room for a copy; otherwise a copy. */
  #takeBegun(block: number, links: number, owner: Sequence): number {
    this.#allocator.adopt(block, owner.number);
    if (!this.#prefixes!.holds(block, links)) return block;
    if (this.#allocator.available === 0) {
      this.#prefixes!.forget(block, links);
      return block;
    }
    const copy = this.#copyOf(block, owner);
    this.#allocator.release(block, owner.number, true);
    return copy;
  }

  #copyOf(block: number, owner: Sequence): number {
    const copy = this.#allocator.take(owner.number);
    this.#runner.copyBlock(block, copy);
    return copy;
  }
}
