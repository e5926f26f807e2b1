// llama.cpp through node-llama-cpp, on the CPU, with its prebuilt binary and its defaults: keys and values are float16. Each
// measured cell gets its own context, because a context has a fixed number and length of sequences.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLap } from "../process/stopwatch.ts";
import { type Contender, type ContenderOptions, WARM_STEPS } from "./contender.ts";
import { DecodeLap } from "./decode-lap.ts";
import { loadPeer } from "./peer.ts";

/** The part of node-llama-cpp that is used here. */
interface LlamaModule {
  LlamaLogLevel: { error: unknown };
  getLlama(options: object): Promise<{ loadModel(options: object): Promise<LlamaModel> }>;
}
interface LlamaModel {
  createContext(options: object): Promise<LlamaContext>;
}
interface LlamaContext {
  getSequence(): LlamaSequence;
  dispose(): Promise<void>;
}
interface LlamaSequence {
  readonly nextTokenIndex: number;
  evaluate(tokens: number[], options: object): AsyncGenerator<number>;
  evaluateWithoutGeneratingNewTokens(tokens: number[]): Promise<void>;
  controlledEvaluate(input: [number, object][]): Promise<{ next: { probabilities: Map<number, number> } }[]>;
  eraseContextTokenRanges(ranges: { start: number; end: number }[]): Promise<void>;
  clearHistory(): Promise<void>;
  saveStateToFile(path: string): Promise<unknown>;
  loadStateFromFile(path: string, accept: { acceptRisk: true }): Promise<void>;
}

const GREEDY = { temperature: 0, yieldEogToken: true };
/** Spare room in a sequence, in tokens. */
const MARGIN = 8;

interface Cell {
  context: LlamaContext;
  sequences: LlamaSequence[];
  prompt: number[];
  steps: number;
}

interface LlamaOptions extends ContenderOptions {
  flashAttention: boolean;
}

export async function create(options: LlamaOptions): Promise<Contender> {
  const { getLlama, LlamaLogLevel } = await loadPeer<LlamaModule>("node-llama-cpp");
  const { threads, flashAttention } = options;
  const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads });
  const model = await llama.loadModel({ modelPath: options.model });
  let cell: Cell | null = null;
  /** One context serves all prefills of a length. */
  let prefilling: { length: number; context: LlamaContext; sequence: LlamaSequence } | null = null;

  const context = (longest: number, sequences: number, settings: object = {}): Promise<LlamaContext> =>
    model.createContext({ contextSize: longest + MARGIN, sequences, threads, flashAttention, ...settings });

  const single = async <T>(
    longest: number,
    use: (sequence: LlamaSequence) => Promise<T>,
    settings = {},
  ): Promise<T> => {
    const own = await context(longest, 1, settings);
    try {
      return await use(own.getSequence());
    } finally {
      await own.dispose();
    }
  };

  return {
    async prefill(prompt) {
      if (prefilling?.length !== prompt.length) {
        await prefilling?.context.dispose();
        const own = await context(prompt.length + 1, 1);
        prefilling = { length: prompt.length, context: own, sequence: own.getSequence() };
      }
      const lap = startLap();
      await take(prefilling.sequence, prompt, 1, () => {});
      const measured = lap(prompt.length);
      await prefilling.sequence.clearHistory();
      return measured;
    },
    async prepareDecode(prompt, batch, steps) {
      await prefilling?.context.dispose();
      prefilling = null;
      const own = await context(prompt.length + 1 + WARM_STEPS + steps, batch);
      const sequences = Array.from({ length: batch }, () => own.getSequence());
      await fill(sequences, prompt);
      cell = { context: own, sequences, prompt, steps };
    },
    async decode() {
      const { sequences, prompt, steps } = cell!;
      for (const sequence of sequences) {
        const end = sequence.nextTokenIndex;
        if (end > prompt.length) await sequence.eraseContextTokenRanges([{ start: prompt.length, end }]);
      }
      const lap = new DecodeLap(sequences.length, WARM_STEPS, steps);
      const first = prompt.slice(-1);
      await Promise.all(sequences.map((each) => take(each, first, WARM_STEPS + steps, () => lap.add(1))));
      return lap.result;
    },
    async finishDecode() {
      await cell?.context.dispose();
      cell = null;
    },
    async score(tokens) {
      // float32 keys and values, so that the check compares only the weights.
      const settings = {
        experimentalKvCacheKeyType: "F32",
        experimentalKvCacheValueType: "F32",
        flashAttention: false,
      };
      return single(
        tokens.length,
        async (sequence) => {
          const wanted = { generateNext: { probabilities: true, options: { temperature: 0 } } };
          const outputs = await sequence.controlledEvaluate(tokens.slice(0, -1).map((token) => [token, wanted]));
          return outputs.map(({ next }, i) => Math.log(next.probabilities.get(tokens[i + 1]!)!));
        },
        settings,
      );
    },
    async greedy(prompt, count) {
      return single(prompt.length + count, async (sequence) => {
        const tokens: number[] = [];
        await take(sequence, prompt, count, (token) => tokens.push(token));
        return tokens;
      });
    },
  };
}

async function take(
  sequence: LlamaSequence,
  prompt: number[],
  count: number,
  each: (token: number) => void,
): Promise<void> {
  let taken = 0;
  for await (const token of sequence.evaluate(prompt, GREEDY)) {
    each(token);
    taken += 1;
    if (taken === count) break;
  }
}

/** Computes the prompt once and copies its state to the other sequences. */
async function fill(sequences: readonly LlamaSequence[], prompt: number[]): Promise<void> {
  const [first, ...others] = sequences;
  await first!.evaluateWithoutGeneratingNewTokens(prompt);
  if (others.length === 0) return;
  const folder = mkdtempSync(join(tmpdir(), "flywheel-bench-state-"));
  try {
    const file = join(folder, "state");
    await first!.saveStateToFile(file);
    for (const sequence of others) await sequence.loadStateFromFile(file, { acceptRisk: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
