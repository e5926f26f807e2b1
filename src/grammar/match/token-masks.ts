// Legal next tokens of a configuration, as a bitset. Most of a mask depends only on the innermost rule, not on who
// called it. That part, a frame, is computed once per set of states. Only subtrees that leave the frame, such as a quote
// that closes a string and what follows it, are walked with the real stack.

import type { FreeRun, FreeText } from "./free-text.ts";
import type { Configuration, Matcher } from "./matcher.ts";
import type { StateSet } from "./state-sets.ts";
import type { TokenTrie } from "./token-trie.ts";

interface Frame {
  /** Legal for every caller. */
  readonly accepted: Int32Array;
  /** Trie nodes, in trie order, whose subtrees hold tokens that depend on the caller. */
  readonly uncertain: Int32Array;
}

/** Memory for cached masks per grammar, in 32-bit words. */
const MAX_MASK_WORDS = 4 * 2 ** 20;
const CONFIGURATION_BYTES = 800;
/** Kernels larger than this are not worth a frame. */
const MAX_FRAME_ITEMS = 8;
/** Trie nodes that cost about as much as visiting one item of a configuration. */
const NODES_PER_WORK = 32;

export class TokenMasks {
  readonly matcher: Matcher;
  readonly trie: TokenTrie;
  readonly words: number;
  /** The token that leads to the program's second start; -1 = none. */
  readonly markerToken: number;
  readonly #freeText: FreeText;
  readonly #frames = new Map<StateSet, Frame>();
  /** Free text that a mask was computed for. */
  readonly #seen = new Set<StateSet>();
  #cachedWords = 0;
  #epoch = 0;
  /** By level of a walk: the configuration, and whether the walk may have left the frame. */
  readonly #path: Configuration[] = [];
  readonly #leftAt: boolean[] = [];

  constructor(matcher: Matcher, trie: TokenTrie, freeText: FreeText) {
    this.matcher = matcher;
    this.trie = trie;
    this.#freeText = freeText;
    this.words = (trie.vocabulary.size + 31) >>> 5;
    this.markerToken = trie.tokenSpelled(matcher.program.marker);
  }

  /** Approximate memory of cached masks and configurations, in bytes. */
  get memory(): number {
    return this.#cachedWords * 4 + this.matcher.size * CONFIGURATION_BYTES;
  }

  /** Shared and cached: callers must not write to it. Stop ids are not considered here. */
  of(configuration: Configuration): Int32Array {
    if (configuration.mask && configuration.epoch === this.matcher.epoch) return configuration.mask;
    if (this.#epoch !== this.matcher.epoch || this.#cachedWords > MAX_MASK_WORDS) this.#reset();
    const like = this.matcher.maskLike(configuration);
    if (like.mask === null || like.epoch !== this.matcher.epoch) {
      const mask = like.exhausted ? new Int32Array(this.words) : this.#compute(like);
      this.matcher.renew(like);
      like.mask = mask;
      this.#cachedWords += this.words;
    }
    this.matcher.renew(configuration);
    configuration.mask = like.mask;
    return like.mask;
  }

  #compute(configuration: Configuration): Int32Array {
    const states = this.#statesOf(configuration);
    const free = this.#freeText.run(this.matcher, configuration);
    if (free !== null && !this.#framePays(states)) {
      const mask = this.#walkExits(configuration, free, null);
      if (states !== null) this.#seen.add(states);
      return mask;
    }
    if (states === null) return this.#walkAll(configuration, null);
    const frame = this.#frameOf(states);
    if (frame.uncertain.length === 0) return frame.accepted;
    const mask = frame.accepted.slice();
    this.#walkNodes(configuration, frame.uncertain, mask, null);
    return mask;
  }

  /** A frame of free text pays only if the same text occurs again, in a string with another caller. */
  #framePays(states: StateSet | null): boolean {
    if (states === null || !this.#seen.has(states)) return false;
    return this.#freeText.run(this.matcher, this.matcher.frame(states)) !== null;
  }

  /** The innermost states, which a frame belongs to; null if there are too many. */
  #statesOf({ kernel }: Configuration): StateSet | null {
    if (kernel.sets.length > MAX_FRAME_ITEMS) return null;
    const { sets } = this.matcher;
    return kernel.sets.reduce((all, set) => sets.union(all, set));
  }

  #frameOf(states: StateSet): Frame {
    let frame = this.#frames.get(states);
    if (frame === undefined) {
      const uncertain: number[] = [];
      const accepted = this.#walkAll(this.matcher.frame(states), uncertain);
      frame = { accepted, uncertain: Int32Array.from(uncertain) };
      this.#frames.set(states, frame);
      this.#cachedWords += this.words + uncertain.length;
    }
    return frame;
  }

  /** The tokens that can follow inside the frame. `uncertain` collects the nodes of those that can follow only outside it. */
  #walkAll(start: Configuration, uncertain: number[] | null): Int32Array {
    const free = this.#freeText.run(this.matcher, start);
    if (free !== null) return this.#walkExits(start, free, uncertain);
    const mask = new Int32Array(this.words);
    const { classes } = this.matcher.program;
    const { firstNodes } = this.trie;
    for (let byte = 0; byte < 256; byte++) {
      const node = firstNodes[byte]!;
      if (node === 0) continue;
      const next = this.matcher.advance(start, classes[byte]!);
      if (next !== null) this.#walk(start, node, this.trie.skip[node]!, start.escaped, mask, uncertain);
      else if (start.escaped) uncertain?.push(node);
    }
    return mask;
  }

  #walkExits(start: Configuration, { slice, steps, strangers }: FreeRun, uncertain: number[] | null): Int32Array {
    const { skip } = this.trie;
    const { classes } = this.matcher.program;
    const { exits, exitBytes, exitLengths } = slice;
    const mask = slice.mask.slice();
    if (steps === null) {
      this.#walkNodes(start, exits, mask, uncertain);
      return mask;
    }
    const left: boolean[] = [];
    for (const at of steps) left.push(at.escaped || left.at(-1) === true);
    this.matcher.spend(Math.ceil(exits.length / NODES_PER_WORK));
    for (const node of strangers) {
      this.trie.removeTokens(mask, node, skip[node]!);
      this.#walk(start, node, skip[node]!, left[0]!, mask, uncertain);
    }
    let stranger = 0;
    for (let i = 0; i < exits.length; i++) {
      const node = exits[i]!;
      while (stranger < strangers.length && skip[strangers[stranger]!]! <= node) stranger++;
      if (stranger < strangers.length && strangers[stranger]! < node) continue;
      const length = exitLengths[i]!;
      const from = steps[length]!;
      if (from.next[classes[exitBytes[i]!]!] !== null) {
        this.#walk(from, node, skip[node]!, left[length]!, mask, uncertain);
      } else if (left[length]) uncertain?.push(node);
    }
    return mask;
  }

  /** Adds the legal tokens of some subtrees. All bytes before these subtrees are legal after `start`. */
  #walkNodes(start: Configuration, nodes: Int32Array, mask: Int32Array, uncertain: number[] | null): void {
    const { depth, skip, tokenOffsets, tokens, vocabulary } = this.trie;
    const { bytes, offsets } = vocabulary;
    const { classes } = this.matcher.program;
    /** By level: the configurations along the bytes in front of the last node, and whether the frame was left. */
    const path = [start];
    const left = [start.escaped];
    let before = 0;
    for (const node of nodes) {
      const token = offsets[tokens[tokenOffsets[node]!]!]!;
      const end = depth[node]! - 1;
      let level = 0;
      while (level < end && level + 1 < path.length && bytes[token + level] === bytes[before + level]) level++;
      path.length = level + 1;
      for (; level < end; level++) {
        const next = this.matcher.advance(path[level]!, classes[bytes[token + level]!]!)!;
        path.push(next);
        left[level + 1] = left[level]! || next.escaped;
      }
      before = token;
      this.#walk(path[level]!, node, skip[node]!, left[level]!, mask, uncertain);
    }
    this.matcher.spend(nodes.length >> 4);
  }

  /**
   * Adds the legal tokens among the nodes first..end, a subtree or several siblings' after a prefix that led to `start`.
   * `left`: the frame could have been left on that prefix.
   */
  #walk(
    start: Configuration,
    first: number,
    end: number,
    left: boolean,
    mask: Int32Array,
    uncertain: number[] | null,
  ): void {
    const { byte, depth, skip } = this.trie;
    const { classes } = this.matcher.program;
    const base = depth[first]! - 1;
    const path = this.#path;
    const leftAt = this.#leftAt;
    path[0] = start;
    leftAt[0] = left;
    let visited = 0;
    for (let node = first; node < end; ) {
      visited++;
      const level = depth[node]! - base;
      const from = path[level - 1]!;
      const byteClass = classes[byte[node]!]!;
      const known = from.next[byteClass];
      const next = known === undefined ? this.matcher.advance(from, byteClass) : known;
      let after = skip[node]!;
      if (next === null) {
        if (leftAt[level - 1]) uncertain?.push(node);
      } else if (this.#freeText.subtreeLegal(this.matcher, next, node)) {
        this.trie.addTokens(mask, node, after);
      } else {
        this.trie.addTokens(mask, node, node + 1);
        const leaves = leftAt[level - 1]! || next.escaped;
        if (!next.exhausted) {
          path[level] = next;
          leftAt[level] = leaves;
          after = node + 1;
        } else if (leaves) uncertain?.push(node);
      }
      node = after;
    }
    this.matcher.spend(Math.ceil(visited / NODES_PER_WORK));
  }

  #reset(): void {
    if (this.#epoch === this.matcher.epoch) this.matcher.forget();
    this.#epoch = this.matcher.epoch;
    this.#frames.clear();
    this.#seen.clear();
    this.#cachedWords = 0;
  }
}
