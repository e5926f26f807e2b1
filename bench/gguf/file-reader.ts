// What is asked of an engine that has read a GGUF file.

export interface FileReader {
  /** The most likely continuation, also beyond an end token. */
  greedy(prompt: readonly number[], count: number): Promise<number[]>;
  /** Natural log-probabilities of every token after each of `tokens`: one row of the vocabulary's size for each. */
  distributions(tokens: readonly number[]): Promise<Float64Array[]>;
  close(): Promise<void>;
}
