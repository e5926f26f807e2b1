// Our engine as the service runs it: in its worker thread, with default scheduling. Only the prefix cache is off. Otherwise
// it would answer every repetition after the first.

import { blockOfLinks, cacheTypeHere, createEmbeddedEngine, DEFAULT_LINK_SIZE } from "../../src/app/embedded-engine.ts";
import { blockBytes } from "../../src/model/attention/cache-type.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { startLap } from "../process/stopwatch.ts";
import { type Contender, type ContenderOptions, type Precision, WARM_STEPS } from "./contender.ts";
import { DecodeLap } from "./decode-lap.ts";
import { greedyRequest, tokenIds } from "./engine-requests.ts";

const WEIGHT_TYPE: Readonly<Partial<Record<Precision, WeightType>>> = { f32: "float32", int8: "int8", int4: "int4" };

/** Extra blocks for partly filled ones and for the scheduler's spare block per sequence. */
const SPARE_BLOCKS = 2 * 32;

export async function create(options: ContenderOptions): Promise<Contender> {
  const weightType = WEIGHT_TYPE[options.precision];
  if (weightType === undefined) throw new Error(`this engine has no ${options.precision} weights`);
  const config = readModelConfig(options.model);
  const positionsPerBlock = blockOfLinks(DEFAULT_LINK_SIZE);
  const blocks = Math.ceil(options.totalTokens / positionsPerBlock) + SPARE_BLOCKS;
  const engine = await createEmbeddedEngine({
    folder: options.model,
    weightType,
    threads: options.threads,
    kvCacheBytes: blocks * blockBytes(config, positionsPerBlock, await cacheTypeHere(weightType)),
    scheduling: { prefixCaching: false },
  });
  let cell: { prompt: number[]; batch: number; steps: number } | null = null;

  const greedy = async (prompt: number[], count: number): Promise<number[]> => {
    const tokens: number[] = [];
    for await (const output of engine.generate(greedyRequest(prompt, { maxTokens: count }))) {
      tokens.push(...tokenIds(output));
    }
    return tokens;
  };

  return {
    async prefill(prompt) {
      const lap = startLap();
      await greedy(prompt, 1);
      return lap(prompt.length);
    },
    async prepareDecode(prompt, batch, steps) {
      cell = { prompt, batch, steps };
    },
    async decode() {
      const { prompt, batch, steps } = cell!;
      // The prefill gives every sequence its first token.
      const lap = new DecodeLap(batch, 1 + WARM_STEPS, steps);
      const request = greedyRequest(prompt, { maxTokens: 1 + WARM_STEPS + steps }, { n: batch });
      for await (const output of engine.generate(request)) lap.add(tokenIds(output).length);
      return lap.result;
    },
    async finishDecode() {
      cell = null;
    },
    async score(tokens) {
      for await (const output of engine.generate(greedyRequest(tokens, { maxTokens: 1, promptLogprobs: 0 }))) {
        tokenIds(output);
        if (output.type === "prefill") return output.promptLogprobs!.slice(1).map((entry) => entry!.logprob);
      }
      throw new Error("the engine gave no prompt log-probabilities");
    },
    greedy,
  };
}
