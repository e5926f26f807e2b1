// How long a sequence may be to be trained, and what a report says of one that is longer.

export interface LengthLimits {
  /** Longest sequence the model takes. */
  maxSequenceLength: number;
  /** Longest sequence whose activations fit the memory for training, by the trainer's own arithmetic. */
  maxTrainedLength: number;
}

export interface LengthLimit {
  tokens: number;
  /** "longer than 512 tokens": continues "the sequence is". */
  exceeded: string;
}

/** `allowed`: the most tokens that model and job allow. */
export function lengthLimit(allowed: number, { maxTrainedLength }: LengthLimits): LengthLimit {
  const tokens = Math.min(allowed, maxTrainedLength);
  const because = tokens < allowed ? ", the most that fits the memory for training" : "";
  return { tokens, exceeded: `longer than ${tokens} tokens${because}` };
}

/** What a report says when only some of the sequences fit. */
export function partlyTooLong(all: number, fitting: number, { exceeded }: LengthLimit): string {
  return `${all - fitting} of its ${all} sequences are ${exceeded}`;
}
