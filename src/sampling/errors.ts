// What can go wrong while choosing a token. Both end one sequence, never the step: the engine turns them into finish
// "error" of that sequence with the message.

/** The request's own restrictions (grammar, allowed ids, bad words, min_tokens) leave no token to choose. */
export class NoLegalTokenError extends Error {
  override readonly name = "NoLegalTokenError";
  constructor(position: number) {
    super(
      `No token is allowed at output position ${position}: the grammar, allowed_token_ids, bad_words and min_tokens ` +
        "of this request contradict each other. Relax one of them.",
    );
  }
}

/** The model returned logits that are no distribution: a NaN, +Infinity, or nothing but -Infinity. */
export class InvalidLogitsError extends Error {
  override readonly name = "InvalidLogitsError";
  constructor(found: string) {
    super(`The model returned invalid logits (${found}). Check the checkpoint and the adapter for non-finite weights.`);
  }
}
