// What a gradient step computes for every trained token, for reading later. A job's file has a row of float32 per token, in
// the order of its batch: the sequences as they are trained, and in each the trained tokens. NaN = does not apply.

export const TOKEN_FIELDS = [
  /** Log-probability under the weights that the gradient step started from. */
  "new_logprob",
  /** Importance ratio at the configured level, before cap and mask. */
  "ratio",
  /** -1 below the clip interval, 1 above it, else 0. */
  "clipped",
  /** After tau and KL penalty. */
  "advantage",
  "weight",
  /** Derivative of the gradient step's loss with respect to the log-probability. */
  "gradient",
  /** Of the distribution that the token was drawn from. */
  "entropy",
  /** Log-probability minus that of the reference policy. */
  "reference_kl",
] as const;

export const TOKEN_ROW_BYTES = 4 * TOKEN_FIELDS.length;

export type TokenNumbers = Record<(typeof TOKEN_FIELDS)[number], number>;

/** The rows of one gradient step. */
export class TokenRows {
  readonly values: Float32Array;
  readonly #firstRow = new Map<number, number>();

  /** `predicting` has an element per trained token. */
  constructor(sequences: readonly { index: number; predicting: ArrayLike<number> }[]) {
    let rows = 0;
    for (const { index, predicting } of sequences) {
      this.#firstRow.set(index, rows);
      rows += predicting.length;
    }
    this.values = new Float32Array(rows * TOKEN_FIELDS.length).fill(Number.NaN);
  }

  /** `token`: index among the trained tokens of the sequence. */
  set(sequence: number, token: number, numbers: Partial<TokenNumbers>): void {
    const at = (this.#firstRow.get(sequence)! + token) * TOKEN_FIELDS.length;
    for (const [i, field] of TOKEN_FIELDS.entries()) this.values[at + i] = numbers[field] ?? Number.NaN;
  }
}
