// The errors of choosing a token. Each ends one sequence, never the step: the engine finishes that sequence with
// "error" and the message.

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

/** The model's logits are not a distribution: they hold a NaN or +Infinity, or nothing but -Infinity. */
export class InvalidLogitsError extends Error {
  override readonly name = "InvalidLogitsError";
  constructor(found: string) {
    super(`The model returned invalid logits (${found}). Check the checkpoint and the adapter for non-finite weights.`);
  }
}
