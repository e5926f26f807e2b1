// One constrained sequence on the engine thread: its next mask and its forced tokens. Work is rationed. A sequence that
// needs more than its ration for a token waits for further steps, and does not slow down the rest of the batch. What it
// has found so far is kept, for itself and for every other sequence with the same grammar.

import type { DistinctItems, Place } from "./distinct/distinct-items.ts";
import { type Configuration, Postponed } from "./matcher.ts";
import { BrokenConstraintError, type SequenceConstraint, SlowConstraintError } from "./sequence-constraint.ts";
import type { TokenMasks } from "./token-masks.ts";
import { tokenBytes } from "./token-trie.ts";

/** Work units, about 0.1 µs each, that a sequence may save up, and that every step adds. */
const RATION_CAPACITY = 250_000;
const RATION_PER_STEP = 10_000;
/** What one attempt may take is doubled while it is too little, so that each gets further than the last, up to this. */
const MAX_ATTEMPT = 500_000;
/** The last guard: a mask that takes longer ends the sequence. Milliseconds. */
const PATIENCE = 60_000;
const MAX_FORCED = 64;
const UNLIMITED = Number.MAX_SAFE_INTEGER;

export class GrammarConstraint implements SequenceConstraint {
  readonly #masks: TokenMasks;
  /** null if no array of the grammar has distinct items. */
  readonly #distinct: DistinctItems | null;
  readonly #stopTokenIds: readonly number[];
  readonly #ignoreEos: boolean;
  readonly #buffer: Int32Array;
  /** The buffer holds the legal tokens of the next position. */
  #isReady = false;
  #place: Place;
  /** The token that may open the reasoning. It is legal only as the first one; -1 = none. */
  #markerToken: number;
  #lifted = false;
  #ration = RATION_CAPACITY;
  /** What an attempt may take although the ration is smaller. */
  #attemptSize = RATION_PER_STEP;
  /** When the first attempt at the next mask was postponed; null = it was not. */
  #postponedAt: number | null = null;

  constructor(masks: TokenMasks, distinct: DistinctItems | null, stopTokenIds: readonly number[], ignoreEos: boolean) {
    this.#masks = masks;
    this.#distinct = distinct;
    this.#stopTokenIds = stopTokenIds.filter((id) => id >= 0 && id < masks.trie.vocabulary.size);
    // Without a stop id nothing could follow a complete text, so the mask is lifted there as with ignore_eos.
    this.#ignoreEos = ignoreEos || this.#stopTokenIds.length === 0;
    this.#buffer = new Int32Array(masks.words);
    this.#place = outside(this.#charged(UNLIMITED, () => masks.matcher.start()));
    this.#markerToken = masks.markerToken;
  }

  ready(): boolean {
    if (this.#postponedAt !== null) {
      this.#earn();
      if (performance.now() - this.#postponedAt > PATIENCE) {
        throw new SlowConstraintError("The next token of the constraint was not found in time.");
      }
    }
    if (this.#ration < 0 || (!this.#complete() && !this.#attempt(() => this.#legalInto(this.#place, this.#buffer)))) {
      this.#postponedAt ??= performance.now();
      return false;
    }
    this.#isReady = true;
    this.#postponedAt = null;
    this.#attemptSize = RATION_PER_STEP;
    return true;
  }

  mask(): Int32Array | null {
    if (this.#complete()) return null;
    if (!this.#isReady) this.#charged(UNLIMITED, () => this.#legalInto(this.#place, this.#buffer));
    if (!hasAny(this.#buffer)) throw this.#deadEnd();
    const marker = this.#markerToken;
    if (marker >= 0) this.#buffer[marker >>> 5]! |= 1 << (marker & 31);
    return this.#buffer;
  }

  accept(tokenId: number): void {
    this.#earn();
    this.#isReady = false;
    if (this.#complete()) return;
    const marker = this.#markerToken;
    this.#markerToken = -1;
    if (tokenId === marker) {
      this.#place = outside(this.#charged(UNLIMITED, () => this.#masks.matcher.startAfterMarker()));
      return;
    }
    if (this.#place.configuration.accepting && this.#stopTokenIds.includes(tokenId)) {
      this.#lifted = true;
      return;
    }
    const bytes = tokenBytes(this.#masks.trie.vocabulary, tokenId);
    const next = bytes.length === 0 ? null : this.#advance(this.#place, bytes);
    if (!next) throw new Error(`token ${tokenId} is not legal at this point of the constraint`);
    this.#place = next;
  }

  forced(): readonly number[] {
    const tokens: number[] = [];
    this.#isReady = false;
    if (this.#complete() || this.#markerToken >= 0) return tokens;
    let at = this.#place;
    while (tokens.length < MAX_FORCED && !at.configuration.exhausted && !at.configuration.accepting) {
      // What takes longer is left to the next step.
      let only = -1;
      this.#attempt(() => {
        only = this.#onlyToken(at);
      });
      if (only < 0) break;
      tokens.push(only);
      at = this.#advance(at, tokenBytes(this.#masks.trie.vocabulary, only))!;
    }
    return tokens;
  }

  dispose(): void {
    this.#lifted = true;
  }

  #complete(): boolean {
    const { accepting, exhausted } = this.#place.configuration;
    return this.#lifted || (this.#ignoreEos && accepting && exhausted);
  }

  #advance(from: Place, bytes: Uint8Array): Place | null {
    return this.#charged(UNLIMITED, () => {
      if (this.#distinct !== null) return this.#distinct.advance(from, bytes);
      const next = this.#masks.matcher.advanceBytes(from.configuration, bytes);
      return next && outside(next);
    });
  }

  #legalInto(place: Place, out: Int32Array): void {
    const { configuration } = place;
    const legal = this.#masks.of(configuration);
    if (this.#distinct === null) out.set(legal);
    else this.#distinct.prune(place, legal, out);
    for (const id of this.#stopTokenIds) {
      if (configuration.accepting) out[id >>> 5]! |= 1 << (id & 31);
      else out[id >>> 5]! &= ~(1 << (id & 31));
    }
  }

  #deadEnd(): BrokenConstraintError {
    const onlyStops = hasAny(this.#masks.of(this.#place.configuration));
    return new BrokenConstraintError(
      onlyStops
        ? "Only stop tokens can continue the constraint, and they are legal only where it may end: take them out of stop_token_ids."
        : "No token of this model's vocabulary can continue the constraint.",
    );
  }

  /**
   * The single legal token, or -1. No legal token at all is an error only once the output gets there. The
   * configuration must not accept, so stop ids are illegal.
   */
  #onlyToken(place: Place): number {
    this.#legalInto(place, this.#buffer);
    let only = -1;
    for (let word = 0; word < this.#buffer.length; word++) {
      const bits = this.#buffer[word]!;
      if (bits === 0) continue;
      if (only >= 0 || (bits & (bits - 1)) !== 0) return -1;
      only = word * 32 + (31 - Math.clz32(bits));
    }
    return only;
  }

  #earn(): void {
    this.#ration = Math.min(RATION_CAPACITY, this.#ration + RATION_PER_STEP);
  }

  /** Returns false if the work has to be postponed. Each attempt may take more than the last, so that it gets further. */
  #attempt(work: () => void): boolean {
    try {
      this.#charged(Math.max(this.#ration, this.#attemptSize), work);
      return true;
    } catch (error) {
      if (!(error instanceof Postponed)) throw error;
      this.#attemptSize = Math.min(MAX_ATTEMPT, 2 * this.#attemptSize);
      return false;
    }
  }

  /** What the work takes counts against the ration, which may become a debt. */
  #charged<T>(allowance: number, work: () => T): T {
    const { matcher } = this.#masks;
    matcher.allowance = allowance;
    try {
      return work();
    } finally {
      this.#ration -= allowance - matcher.allowance;
      matcher.allowance = UNLIMITED;
    }
  }
}

/** In no array whose items must differ. */
function outside(configuration: Configuration): Place {
  return { configuration, position: null };
}

function hasAny(bits: Int32Array): boolean {
  return bits.some((word) => word !== 0);
}
