// How the engine thread sees a grammar: as a mask per position of one sequence. The engine asks for the mask when the
// logits are ready, and reports every token it appends.

/** The constraint cannot be followed any further. The message is for the client that sent it. */
export class BrokenConstraintError extends Error {
  override name = "BrokenConstraintError";
}

/** The constraint took longer than the last guard allows. Another attempt may succeed. */
export class SlowConstraintError extends Error {
  override name = "SlowConstraintError";
}

export interface SequenceConstraint {
  /**
   * Works on the next mask, as far as the sequence's share of the thread goes. False = there is more to do, so the
   * sequence sits this step out and asks again in the next one. After true, `mask` returns at once.
   */
  ready(): boolean;
  /**
   * Legal tokens of the next position as a bitset: bit (id & 31) of word (id >>> 5); null = everything is legal now
   * (the text is complete and ignore_eos is set).
   * Stop ids are legal only where the grammar may end. An error ends this sequence only.
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
