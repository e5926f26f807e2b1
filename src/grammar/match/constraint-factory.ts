// Makes constraints from the keys of compiled grammars, on the engine thread. A key is a content hash followed by the
// packed program. Threads therefore share no state, and a restarted engine thread has nothing to replay.

import { createHash } from "node:crypto";
import { type Program, packProgram, unpackProgram } from "../automaton/program.ts";
import { DistinctItems } from "./distinct/distinct-items.ts";
import { FreeText } from "./free-text.ts";
import { GrammarConstraint } from "./grammar-constraint.ts";
import { Matcher } from "./matcher.ts";
import type { ConstraintFactory, SequenceConstraint } from "./sequence-constraint.ts";
import { TokenMasks } from "./token-masks.ts";
import { TokenTrie } from "./token-trie.ts";
import type { TokenVocabulary } from "./token-vocabulary.ts";

/** Hex digits of the hash in front of the program. */
const HASH_LENGTH = 64;
/** Memory for the programs, configurations and masks of all grammars. The least recently used grammar goes first. */
const MAX_BYTES = 256 * 2 ** 20;

export function grammarKey(program: Program): string {
  const packed = packProgram(program);
  return createHash("sha256").update(packed, "latin1").digest("hex") + packed;
}

interface Loaded {
  masks: TokenMasks;
  distinct: DistinctItems | null;
  programBytes: number;
}

export class GrammarConstraintFactory implements ConstraintFactory {
  readonly #vocabulary: TokenVocabulary;
  #prepared: { trie: TokenTrie; freeText: FreeText } | null = null;
  /** By hash, oldest use first. */
  readonly #grammars = new Map<string, Loaded>();

  constructor(vocabulary: TokenVocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Builds the token trie now, not with the first constrained request. It takes 2 s at 150,000 tokens. */
  prepare(): void {
    this.#tokens().freeText.prepare();
  }

  #tokens(): { trie: TokenTrie; freeText: FreeText } {
    if (this.#prepared === null) {
      const trie = new TokenTrie(this.#vocabulary);
      this.#prepared = { trie, freeText: new FreeText(trie) };
    }
    return this.#prepared;
  }

  create(grammar: string, stopTokenIds: readonly number[], ignoreEos: boolean): SequenceConstraint {
    const hash = grammar.slice(0, HASH_LENGTH);
    const known = this.#grammars.get(hash) ?? this.#load(grammar);
    this.#grammars.delete(hash);
    this.#grammars.set(hash, known);
    this.#evict();
    return new GrammarConstraint(known.masks, known.distinct, stopTokenIds, ignoreEos);
  }

  #load(grammar: string): Loaded {
    const matcher = new Matcher(unpackProgram(grammar.slice(HASH_LENGTH)));
    const { trie, freeText } = this.#tokens();
    return {
      masks: new TokenMasks(matcher, trie, freeText),
      distinct: DistinctItems.of(matcher, trie),
      programBytes: grammar.length,
    };
  }

  /** Sequences that use an evicted grammar keep it until they end. */
  #evict(): void {
    let total = 0;
    for (const { masks, programBytes } of this.#grammars.values()) total += masks.memory + programBytes;
    for (const [oldest, { masks, programBytes }] of this.#grammars) {
      if (total <= MAX_BYTES || this.#grammars.size === 1) break;
      this.#grammars.delete(oldest);
      total -= masks.memory + programBytes;
    }
  }
}
