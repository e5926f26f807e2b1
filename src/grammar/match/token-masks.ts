// Legal next tokens of a configuration, as a bitset. Most of a mask depends only on the innermost rule, not on who
// called it: that part (a frame) is computed once per set of states; only tokens that leave the frame, such as one that
// closes a string and goes on, are checked against the real stack.

import type { Configuration, Matcher } from "./matcher.ts";
import { type TokenTrie, tokenBytes } from "./token-trie.ts";

interface Frame {
  /** Legal whoever the caller is. */
  readonly accepted: Int32Array;
  /** Legal or not depending on the caller. */
  readonly uncertain: readonly number[];
}

/** Memory for cached masks per grammar, in 32-bit words. */
const MAX_MASK_WORDS = 4 * 2 ** 20;
const CONFIGURATION_BYTES = 800;
/** Kernels larger than this are not worth a frame. */
const MAX_FRAME_STATES = 8;
/** Trie nodes that cost about as much as visiting one item of a configuration. */
const NODES_PER_WORK = 32;

export class TokenMasks {
  readonly matcher: Matcher;
  readonly trie: TokenTrie;
  readonly words: number;
  /** The token that leads to the program's second start; -1 = none. */
  readonly markerToken: number;
  /** null = too many uncertain tokens: walk the real configuration instead. */
  #frames = new Map<string, Frame | null>();
  #cachedWords = 0;
  #epoch = 0;

  constructor(matcher: Matcher, trie: TokenTrie) {
    this.matcher = matcher;
    this.trie = trie;
    this.words = (trie.vocabulary.size + 31) >>> 5;
    this.markerToken = trie.tokenSpelled(matcher.program.marker);
  }

  /** Roughly, in bytes: cached masks and configurations. */
  get memory(): number {
    return this.#cachedWords * 4 + this.matcher.size * CONFIGURATION_BYTES;
  }

  /** Shared and cached: callers must not write to it. Stop ids are not considered here. */
  of(configuration: Configuration): Int32Array {
    if (configuration.mask && configuration.epoch === this.matcher.epoch) return configuration.mask;
    if (this.#epoch !== this.matcher.epoch || this.#cachedWords > MAX_MASK_WORDS) this.#reset();
    const mask = configuration.exhausted ? new Int32Array(this.words) : this.#compute(configuration);
    if (configuration.epoch !== this.matcher.epoch) {
      configuration.next = [];
      configuration.epoch = this.matcher.epoch;
    }
    configuration.mask = mask;
    this.#cachedWords += this.words;
    return mask;
  }

  #compute(configuration: Configuration): Int32Array {
    const frame = this.#frameOf(configuration);
    if (!frame) return this.#walk(configuration);
    const mask = frame.accepted.slice();
    this.matcher.spend(frame.uncertain.length >> 2);
    for (const token of frame.uncertain) {
      if (this.matcher.advanceBytes(configuration, tokenBytes(this.trie.vocabulary, token))) {
        mask[token >>> 5]! |= 1 << (token & 31);
      }
    }
    return mask;
  }

  #walk(configuration: Configuration): Int32Array {
    const { nodeCount, byte, depth, skip, tokenOffsets, tokens } = this.trie;
    const { classes } = this.matcher.program;
    const mask = new Int32Array(this.words);
    const path: Configuration[] = [configuration];
    let visited = 0;
    for (let node = 1; node < nodeCount; ) {
      visited++;
      const level = depth[node]!;
      const from = path[level - 1]!;
      const byteClass = classes[byte[node]!]!;
      const known = from.next[byteClass];
      const next = known === undefined ? this.matcher.advance(from, byteClass) : known;
      if (next === null) {
        node = skip[node]!;
        continue;
      }
      path[level] = next;
      for (let i = tokenOffsets[node]!; i < tokenOffsets[node + 1]!; i++) {
        mask[tokens[i]! >>> 5]! |= 1 << (tokens[i]! & 31);
      }
      node++;
    }
    this.matcher.spend(Math.ceil(visited / NODES_PER_WORK));
    return mask;
  }

  #frameOf(configuration: Configuration): Frame | null {
    if (configuration.kernelStates.length > MAX_FRAME_STATES) return null;
    const { maskLike } = this.matcher.program;
    const states = [...new Set(configuration.kernelStates.map((state) => maskLike[state]!))].sort((a, b) => a - b);
    const key = states.join(" ");
    let frame = this.#frames.get(key);
    if (frame === undefined) {
      frame = this.#makeFrame(this.matcher.frame(states));
      this.#frames.set(key, frame);
      this.#cachedWords += this.words;
    }
    return frame;
  }

  #makeFrame(start: Configuration): Frame | null {
    const { nodeCount, byte, depth, skip, tokenOffsets, tokens } = this.trie;
    const { classes } = this.matcher.program;
    const accepted = new Int32Array(this.words);
    const uncertain: number[] = [];
    const maxUncertain = 256 + (tokens.length >> 4);
    const path: Configuration[] = [start];
    /** Per level: the frame could have been left at this level or before. */
    const left: boolean[] = [start.escaped];
    let visited = 0;
    for (let node = 1; node < nodeCount; ) {
      visited++;
      const level = depth[node]!;
      const next = this.matcher.advance(path[level - 1]!, classes[byte[node]!]!);
      let inside = node;
      if (next) {
        path[level] = next;
        left[level] = left[level - 1]! || next.escaped;
        for (let i = tokenOffsets[node]!; i < tokenOffsets[node + 1]!; i++) {
          accepted[tokens[i]! >>> 5]! |= 1 << (tokens[i]! & 31);
        }
        inside = node + 1;
        if (!next.exhausted) {
          node = inside;
          continue;
        }
      }
      if (next ? left[level] : left[level - 1]) {
        for (let i = tokenOffsets[inside]!; i < tokenOffsets[skip[node]!]!; i++) uncertain.push(tokens[i]!);
        if (uncertain.length > maxUncertain) return null;
      }
      node = skip[node]!;
    }
    this.matcher.spend(Math.ceil(visited / NODES_PER_WORK));
    return { accepted, uncertain };
  }

  #reset(): void {
    if (this.#epoch === this.matcher.epoch) this.matcher.forget();
    this.#epoch = this.matcher.epoch;
    this.#frames.clear();
    this.#cachedWords = 0;
  }
}
