// How long a sequence may be to be trained, and what a report says about longer ones.

export interface LengthLimits {
  /** Longest sequence that the model accepts, in tokens. */
  maxSequenceLength: number;
  /** Longest sequence whose activations fit the memory for training, as the trainer says. */
  maxTrainedLength: number;
}

export interface LengthLimit {
  tokens: number;
  /** For example "longer than 512 tokens", which follows "the sequence is". */
  exceeded: string;
}

/** `allowed`: the longest sequence that the model and the job allow. `named`: what sets it, if it is not the model. */
export function lengthLimit(allowed: number, { maxTrainedLength }: LengthLimits, named?: string): LengthLimit {
  const tokens = Math.min(allowed, maxTrainedLength);
  const why = tokens < allowed ? "the most that fits the memory for training" : named;
  return { tokens, exceeded: `longer than ${tokens} tokens${why === undefined ? "" : `, ${why}`}` };
}

/** The report's reason when only some sequences fit. */
export function partlyTooLong(all: number, fitting: number, { exceeded }: LengthLimit): string {
  return `${all - fitting} of its ${all} sequences are ${exceeded}`;
}
