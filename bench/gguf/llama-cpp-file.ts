// A GGUF file in llama.cpp, through node-llama-cpp on the CPU. Keys and values are float32 and flash attention is off, so that
// only weights and arithmetic are compared.

import type { FileReader } from "./file-reader.ts";

/** The part of node-llama-cpp that is used here. */
export interface LlamaCpp {
  LlamaLogLevel: { error: unknown };
  getLlama(options: object): Promise<{ loadModel(options: object): Promise<Model>; dispose(): Promise<void> }>;
}
interface Model {
  tokenize(text: string, specialTokens: boolean): number[];
  createContext(options: object): Promise<Context>;
}
interface Context {
  getSequence(): Sequence;
  dispose(): Promise<void>;
}
interface Sequence {
  evaluate(tokens: readonly number[], options: object): AsyncGenerator<number>;
  controlledEvaluate(
    input: readonly [number, object][],
  ): Promise<({ next: { probabilities: Map<number, number> } } | undefined)[]>;
}

const SETTINGS = {
  experimentalKvCacheKeyType: "F32",
  experimentalKvCacheValueType: "F32",
  flashAttention: false,
};
const ALL_PROBABILITIES = { generateNext: { probabilities: true, options: { temperature: 0 } } };

export interface LlamaCppFile extends FileReader {
  /** The ids of a text, without tokens around it. */
  tokenize(text: string): number[];
}

export async function openInLlamaCpp(llamaCpp: LlamaCpp, path: string, threads: number): Promise<LlamaCppFile> {
  const { getLlama, LlamaLogLevel } = llamaCpp;
  const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads });
  const model = await llama.loadModel({ modelPath: path });

  async function inContext<T>(longest: number, use: (sequence: Sequence) => Promise<T>): Promise<T> {
    const context = await model.createContext({ contextSize: longest + 8, sequences: 1, threads, ...SETTINGS });
    try {
      return await use(context.getSequence());
    } finally {
      await context.dispose();
    }
  }

  return {
    tokenize: (text) => model.tokenize(text, false),
    greedy: (prompt, count) =>
      inContext(prompt.length + count, async (sequence) => {
        const tokens: number[] = [];
        for await (const token of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
          tokens.push(token);
          if (tokens.length === count) break;
        }
        return tokens;
      }),
    distributions: (tokens) =>
      inContext(tokens.length, async (sequence) => {
        const outputs = await sequence.controlledEvaluate(tokens.map((token) => [token, ALL_PROBABILITIES]));
        return outputs.map((output) => rowOf(output!.next.probabilities));
      }),
    close: () => llama.dispose(),
  };
}

/** A probability too small for float32 counts as the smallest. */
function rowOf(probabilities: ReadonlyMap<number, number>): Float64Array {
  const row = new Float64Array(probabilities.size);
  for (const [id, probability] of probabilities) row[id] = Math.log(Math.max(probability, 2 ** -149));
  return row;
}
