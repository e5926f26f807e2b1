// The requests of the soak test: shared and new prefixes, several choices, every way of sampling, clients that leave. They
// are seeded, and each checks that it ended as it should.

import type { Engine } from "../src/engine/contract.ts";
import type { SamplingParams } from "../src/sampling/sampling-params.ts";
import { greedyRequest, tokenIds } from "./contenders/engine-requests.ts";
import { Random } from "./models/random.ts";

const PREFIXES = 8;
const ABORTED = 0.1;
/** Share of requests whose output spans several blocks, so that the cache can run out. */
const LONG = 0.4;

export class SoakTraffic {
  readonly #engine: Engine;
  readonly #prefixes: number[][];

  constructor(engine: Engine) {
    const random = new Random(1);
    this.#engine = engine;
    this.#prefixes = Array.from({ length: PREFIXES }, () =>
      random.tokens(64 + random.below(33), engine.info.vocabSize),
    );
  }

  /** Runs request `number`. Throws if it does not end as it should. */
  async request(number: number): Promise<void> {
    const random = new Random(number + 100);
    const { vocabSize } = this.#engine.info;
    const prefix = random.uniform() < 0.5 ? this.#prefixes[random.below(PREFIXES)]! : [];
    const prompt = [...prefix, ...random.tokens(4 + random.below(61), vocabSize)];
    const maxTokens = 1 + random.below(random.uniform() < LONG ? 128 : 24);
    const n = random.uniform() < 0.8 ? 1 : 2 + random.below(2);
    const cacheSalt = random.uniform() < 0.02 ? `salt-${number}` : null;
    const sampling = { ...randomSampling(random), maxTokens };
    const leaveAfter = random.uniform() < ABORTED ? 1 + random.below(maxTokens) : Number.POSITIVE_INFINITY;

    const request = greedyRequest(prompt, sampling, { n, cacheSalt });
    const counts = new Array<number>(n).fill(0);
    let finished = 0;
    let received = 0;
    for await (const output of this.#engine.generate({ ...request, priority: random.below(3) })) {
      if (output.type !== "tokens") continue;
      counts[output.index]! += tokenIds(output).length;
      received += 1;
      if (received >= leaveAfter) return; // breaking out aborts the request
      if (output.finish === null) continue;
      finished += 1;
      if (output.finish.reason !== "length") throw new Error(`request ${number} ended with ${output.finish.reason}`);
    }
    if (finished !== n || counts.some((count) => count !== maxTokens)) {
      throw new Error(`request ${number}: ${finished} of ${n} choices, ${counts} of ${maxTokens} tokens each`);
    }
  }
}

function randomSampling(random: Random): Partial<SamplingParams> {
  switch (random.below(4)) {
    case 0:
      return {};
    case 1:
      return { temperature: 1, topP: 0.9, seed: BigInt(random.below(1000)) };
    case 2:
      return { temperature: 0.7, topK: 20, logprobs: 5 };
    default:
      return { temperature: 1, frequencyPenalty: 0.5, promptLogprobs: 1 };
  }
}
