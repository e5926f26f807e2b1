// How long a sequence may be to be trained, and what a report says about longer ones.

export interface LengthLimits {
  /** Longest sequence that the model accepts, in tokens. */
  maxSequenceLength: number;
  /** Longest sequence whose activations fit the memory for training (onnx/longest-sequence.ts). */
  maxTrainedLength: number;
}

export interface LengthLimit {
  tokens: number;
  /** For example "longer than 512 tokens", which follows "the sequence is". */
  exceeded: string;
}

/** `allowed`: the longest sequence that the model and the job allow. */
export function lengthLimit(allowed: number, { maxTrainedLength }: LengthLimits): LengthLimit {
  const tokens = Math.min(allowed, maxTrainedLength);
  const because = tokens < allowed ? ", the most that fits the memory for training" : "";
  return { tokens, exceeded: `longer than ${tokens} tokens${because}` };
}

/** The report's reason when only some sequences fit. */
export function partlyTooLong(all: number, fitting: number, { exceeded }: LengthLimit): string {
  return `${all - fitting} of its ${all} sequences are ${exceeded}`;
}
