// Chooses the tokens of one sequence (one choice of a request), one row of logits at a time, and keeps them. The order
// is: grammar mask; allowed ids, bad words, min_tokens, bias, penalties; then greedy, or temperature, min_p, top_k,
// top_p and a draw. The result depends only on the parameters, the prompt, the rows and the seed, not on the rest of
// the batch. engine/finish.ts decides when a sequence ends.

import { forbiddingControls } from "./controls.ts";
import { drawToken } from "./draw.ts";
import { LogitEdits } from "./edits.ts";
import { InvalidLogitsError, NoLegalTokenError } from "./errors.ts";
import { tokenLogprobs } from "./logprobs.ts";
import type { RandomKey } from "./random.ts";
import { randomKey, uniformAt } from "./random.ts";
import type { LogitRow } from "./row.ts";
import { sharedRow } from "./row.ts";
import type { SamplingParams } from "./sampling-params.ts";
import type { SampledToken } from "./token-logprobs.ts";
import { survivorFloor } from "./truncate.ts";

/** Temperatures below this are greedy. */
export const GREEDY_BELOW = 1e-5;

export class SequenceSampler {
  readonly #params: SamplingParams;
  readonly #vocabSize: number;
  readonly #edits: LogitEdits;
  readonly #key: RandomKey;
  readonly #output: number[] = [];

  constructor(params: SamplingParams, choiceIndex: number, promptTokenIds: readonly number[], vocabSize: number) {
    this.#params = params;
    this.#vocabSize = vocabSize;
    this.#edits = new LogitEdits(params, promptTokenIds, vocabSize);
    this.#key = randomKey(params.seed, choiceIndex);
  }

  /** The tokens chosen so far. */
  get outputTokens(): readonly number[] {
    return this.#output;
  }

  /** What edits the next position, and only it: see LogitEdits. */
  get nextEdits(): { forcedId: number | null; wordEnds: number[] } {
    return { forcedId: this.#edits.forcedId, wordEnds: this.#edits.wordEnds(this.#output) };
  }

  /** Appends a token that was chosen elsewhere. */
  note(id: number): void {
    this.#output.push(id);
    this.#edits.note(id);
  }

  /**
   * Chooses and appends the next token. `logits` is [at least vocabSize] and only read; `mask` is the grammar's bitset
   * of legal ids or null. Throws NoLegalTokenError or InvalidLogitsError, and then appends nothing.
   */
  sample(logits: Float32Array, mask: Int32Array | null): SampledToken {
    const row = sharedRow(this.#vocabSize);
    loadMasked(row, logits, mask);
    const edited = this.#edits.apply(row, this.#output);
    row.scan();
    if (row.max === Number.NEGATIVE_INFINITY) {
      const controls = forbiddingControls(this.#params, this.#output.length, mask !== null);
      if (controls.length > 0) throw new NoLegalTokenError(this.#output.length, controls);
      throw new InvalidLogitsError("nothing but -Infinity");
    }
    const id = this.#params.temperature < GREEDY_BELOW ? row.argmax() : this.#draw(row);
    const { logprobs: k, logprobTokenIds: named } = this.#params;
    if (k !== null && edited) {
      loadMasked(row, logits, mask);
      row.scan();
    }
    const logprobs = k === null ? null : tokenLogprobs(row, id, named ?? k);
    this.note(id);
    return { id, logprobs };
  }

  #draw(row: LogitRow): number {
    const { temperature, topP, minP, topK } = this.#params;
    const floor = survivorFloor(row, temperature, minP, topK);
    const position = this.#output.length;
    return drawToken(row, temperature, topP, floor, (attempt) => uniformAt(this.#key, position, attempt));
  }
}

function loadMasked(row: LogitRow, logits: Float32Array, mask: Int32Array | null): void {
  row.load(logits);
  if (mask !== null) row.allowOnly(mask);
}
