// The token-mask hook: how a grammar restricts one sequence, seen from the engine thread.
// The engine asks for the mask of the next position when its logits are ready and reports every token it appended.
// Implemented by grammar/ (which computes masks right here, on the engine thread, when they are asked for) and by fakes
// in tests.

/** The constraint cannot be followed any further. Its sender's doing: the message is meant for them. */
export class BrokenConstraintError extends Error {
  override name = "BrokenConstraintError";
}

export interface SequenceConstraint {
  /**
   * Legal tokens of the next position as a bitset: bit (id & 31) of word (id >>> 5); null = everything is legal now
   * (the constraint is finished under ignore_eos, or not active yet because the model is still reasoning).
   * Stop ids are legal only where the grammar may end. Whatever it throws ends this sequence only.
   */
  mask(): Int32Array | null;
  /** The token just appended to the output (sampled or forced). */
  accept(tokenId: number): void;
  /**
   * The next tokens if exactly one continuation is legal (jump-forward), else empty. They are appended without sampling.
   */
  forced(): readonly number[];
  dispose(): void;
}

/** Creates one constraint per choice from the key of a grammar that was compiled elsewhere. */
export interface ConstraintFactory {
  /** `stopTokenIds`: ids that may end the output (EOS and stop ids). */
  create(grammar: string, stopTokenIds: readonly number[], ignoreEos: boolean): SequenceConstraint;
}
