// What can go wrong while choosing a token. Both end one sequence, never the step: the engine turns them into finish
// "error" of that sequence with the message.

/** The request's own restrictions leave no token to choose. `controls`: the restrictions at this position, named. */
export class NoLegalTokenError extends Error {
  override readonly name = "NoLegalTokenError";
  constructor(position: number, controls: readonly string[]) {
    super(
      `No token is allowed at output position ${position}: ${controls.join(", ")} together forbid every one. ` +
        "Relax or drop one of them.",
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
