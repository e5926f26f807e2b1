// One constrained sequence on the engine thread: its next mask and its forced tokens. Work is rationed. A grammar that
// needs more than its ration per token ends its own sequence with an error, and does not slow down the rest of the batch.

import type { Configuration } from "./configuration.ts";
import type { DistinctItems, Place } from "./distinct/distinct-items.ts";
import { BrokenConstraintError, type SequenceConstraint } from "./sequence-constraint.ts";
import type { TokenMasks } from "./token-masks.ts";
import { tokenBytes } from "./token-trie.ts";

/** Work units, about 0.1 µs each, that a sequence may save up, and that every token adds. */
const RATION_CAPACITY = 250_000;
const RATION_PER_TOKEN = 10_000;
const MAX_FORCED = 64;

export class GrammarConstraint implements SequenceConstraint {
  readonly #masks: TokenMasks;
  /** null if no array of the grammar has distinct items. */
  readonly #distinct: DistinctItems | null;
  readonly #stopTokenIds: readonly number[];
  readonly #ignoreEos: boolean;
  readonly #buffer: Int32Array;
  #place: Place;
  /** The token that may open the reasoning. It is legal only as the first one; -1 = none. */
  #markerToken: number;
  #lifted = false;
  #ration = RATION_CAPACITY;

  constructor(masks: TokenMasks, distinct: DistinctItems | null, stopTokenIds: readonly number[], ignoreEos: boolean) {
    this.#masks = masks;
    this.#distinct = distinct;
    this.#stopTokenIds = stopTokenIds.filter((id) => id >= 0 && id < masks.trie.vocabulary.size);
    // Without a stop id nothing could follow a complete text, so the mask is lifted there as with ignore_eos.
    this.#ignoreEos = ignoreEos || this.#stopTokenIds.length === 0;
    this.#buffer = new Int32Array(masks.words);
    this.#place = outside(this.#rationed(() => masks.matcher.start()));
    this.#markerToken = masks.markerToken;
  }

  mask(): Int32Array | null {
    if (this.#complete()) return null;
    this.#legalInto(this.#place, this.#buffer);
    if (!hasAny(this.#buffer)) throw this.#deadEnd();
    const marker = this.#markerToken;
    if (marker >= 0) this.#buffer[marker >>> 5]! |= 1 << (marker & 31);
    return this.#buffer;
  }

  accept(tokenId: number): void {
    this.#ration = Math.min(RATION_CAPACITY, this.#ration + RATION_PER_TOKEN);
    if (this.#complete()) return;
    const marker = this.#markerToken;
    this.#markerToken = -1;
    if (tokenId === marker) {
      this.#place = outside(this.#rationed(() => this.#masks.matcher.startAfterMarker()));
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
    if (this.#complete() || this.#markerToken >= 0) return tokens;
    let at = this.#place;
    while (tokens.length < MAX_FORCED && !at.configuration.exhausted) {
      const only = at.configuration.accepting ? -1 : this.#onlyToken(at);
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
    return this.#rationed(() => {
      if (this.#distinct !== null) return this.#distinct.advance(from, bytes);
      const next = this.#masks.matcher.advanceBytes(from.configuration, bytes);
      return next && outside(next);
    });
  }

  #legalInto(place: Place, out: Int32Array): void {
    const { configuration } = place;
    const legal = this.#rationed(() => this.#masks.of(configuration));
    if (this.#distinct === null) out.set(legal);
    else this.#rationed(() => this.#distinct!.prune(place, legal, out));
    for (const id of this.#stopTokenIds) {
      if (configuration.accepting) out[id >>> 5]! |= 1 << (id & 31);
      else out[id >>> 5]! &= ~(1 << (id & 31));
    }
  }

  #deadEnd(): BrokenConstraintError {
    const onlyStops = hasAny(this.#rationed(() => this.#masks.of(this.#place.configuration)));
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

  #rationed<T>(work: () => T): T {
    const { matcher } = this.#masks;
    matcher.allowance = this.#ration;
    try {
      return work();
    } finally {
      this.#ration = matcher.allowance;
      matcher.allowance = Number.POSITIVE_INFINITY;
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
