// Applies a request's edits to the logits before a token is chosen: allowed ids, bad words, stop ids held back by
// min_tokens, logit bias, then penalties. The forced end of a thought that is over its budget overrides them all.
// Grammar masks come before the edits and also shape the reported log-probabilities. Temperature and truncation come
// after. Ids outside the vocabulary have no effect.

import { Penalties } from "./penalties.ts";
import type { LogitRow } from "./row.ts";
import type { SamplingParams } from "./sampling-params.ts";
import { ThinkingBudget } from "./thinking-budget.ts";
import { tokenSet } from "./token-set.ts";

export class LogitEdits {
  readonly #params: SamplingParams;
  readonly #allowed: Int32Array | null;
  readonly #penalties: Penalties;
  readonly #thinking: ThinkingBudget | null;

  constructor(params: SamplingParams, promptTokenIds: readonly number[], vocabSize: number) {
    this.#params = params;
    this.#allowed = params.allowedTokenIds === null ? null : tokenSet(params.allowedTokenIds, vocabSize);
    this.#penalties = new Penalties(params, promptTokenIds);
    this.#thinking = params.thinking === null ? null : new ThinkingBudget(params.thinking);
  }

  /** A token was appended to the output. */
  note(id: number): void {
    this.#penalties.note(id);
    this.#thinking?.note(id);
  }

  /** The token that must come next, since the thought is over its budget, if the grammar allows it; null = any. */
  get forcedId(): number | null {
    return this.#thinking?.forcedId ?? null;
  }

  /** The last tokens of the bad words that one more token would complete. */
  wordEnds(output: readonly number[]): number[] {
    return this.#params.badWords.filter((word) => completes(word, output)).map((word) => word.at(-1)!);
  }

  /** Edits the logits of the position after `output`. Returns whether it changed anything. */
  apply(row: LogitRow, output: readonly number[]): boolean {
    const { values } = row;
    const { minTokens, minTokensMask, logitBias } = this.#params;
    const forced = this.forcedId;
    if (forced !== null && values[forced]! > Number.NEGATIVE_INFINITY) {
      row.allowOnly(tokenSet([forced], row.vocabSize));
      return true;
    }
    let edited = false;
    const forbid = (id: number) => {
      values[id] = Number.NEGATIVE_INFINITY;
      edited = true;
    };
    if (this.#allowed !== null) {
      row.allowOnly(this.#allowed);
      edited = true;
    }
    for (const id of this.wordEnds(output)) forbid(id);
    if (output.length < minTokens) for (const id of minTokensMask) forbid(id);
    for (const [id, bias] of logitBias) {
      values[id]! += bias;
      edited = true;
    }
    return this.#penalties.apply(values) || edited;
  }
}

/** Whether the output ends with all but the last token of the word, so that one more token would complete it. */
function completes(word: readonly number[], output: readonly number[]): boolean {
  const start = output.length - (word.length - 1);
  if (word.length === 0 || start < 0) return false;
  for (let i = 0; i < word.length - 1; i++) {
    if (output[start + i] !== word[i]) return false;
  }
  return true;
}
