// Measures how the prefix cache shortens the time to the first token: a prompt whose first thousand tokens are new, then one
// that starts with the same thousand and ends differently. The engine runs as in the service.

import { createEmbeddedEngine } from "../../src/app/embedded-engine.ts";
import { greedyRequest, tokenIds } from "../contenders/engine-requests.ts";
import { Random } from "../models/random.ts";

export interface PrefixProbe {
  /** `attempt` numbers the repetitions. Each has its own prefix. */
  run(attempt: number): Promise<{ coldSeconds: number; cachedSeconds: number; cachedTokens: number }>;
}

export interface PrefixProbeOptions {
  folder: string;
  threads: number;
}

const PREFIX = 1000;
const ENDING = 16;
const KV_BYTES = 512 * 2 ** 20;

export async function create({ folder, threads }: PrefixProbeOptions): Promise<PrefixProbe> {
  const engine = await createEmbeddedEngine({ folder, threads, kvCacheBytes: KV_BYTES });
  const { vocabSize } = engine.info;

  async function firstToken(prompt: number[]): Promise<{ seconds: number; cachedTokens: number }> {
    const start = performance.now();
    let cachedTokens = 0;
    for await (const output of engine.generate(greedyRequest(prompt, { maxTokens: 1 }))) {
      if (output.type === "prefill") cachedTokens = output.cachedTokens ?? 0;
      else if (tokenIds(output).length > 0) return { seconds: (performance.now() - start) / 1e3, cachedTokens };
    }
    throw new Error("the request ended without a token");
  }

  return {
    async run(attempt) {
      const random = new Random(1000 + attempt);
      const prefix = random.tokens(PREFIX, vocabSize);
      const cold = await firstToken([...prefix, ...random.tokens(ENDING, vocabSize)]);
      const cached = await firstToken([...prefix, ...random.tokens(ENDING, vocabSize)]);
      if (cold.cachedTokens !== 0) throw new Error(`a new prompt had ${cold.cachedTokens} cached tokens`);
      return { coldSeconds: cold.seconds, cachedSeconds: cached.seconds, cachedTokens: cached.cachedTokens };
    },
  };
}
