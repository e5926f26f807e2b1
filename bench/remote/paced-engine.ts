// An engine in the server's own process that computes nothing: what a server costs without the remote path.

import type { Engine, EngineStats, GenerateRequest, Generation, ModelInfo } from "../../src/engine/contract.ts";
import { StatCells } from "../../src/engine/stats.ts";
import { GenerationStream } from "../../src/engine/thread/generation-stream.ts";
import { Ticker, tokenAt } from "./pace.ts";

export class PacedEngine implements Engine {
  readonly info: ModelInfo;
  readonly #ticker = new Ticker();
  #streams = 0;

  constructor(vocabSize: number) {
    this.info = {
      vocabSize,
      maxModelLen: 2048,
      positionsPerBlock: 16,
      cacheTokens: null,
      linkSize: 16,
      policy: "priority",
      maxLoras: 0,
      maxLoraRank: 0,
    };
  }

  generate({ sampling, promptTokenIds }: GenerateRequest): Generation {
    const number = this.#streams++;
    const stream = new GenerationStream(1, () => {});
    stream.push({ type: "prefill", cachedTokens: 0, promptLogprobs: null });
    let position = 0;
    this.#ticker.follow(promptTokenIds, () => {
      if (stream.ended) return false;
      const finish = position === sampling.maxTokens - 1 ? ({ reason: "length", stopReason: null } as const) : null;
      stream.push({ type: "tokens", index: 0, tokens: [{ id: tokenAt(number, position++), logprobs: null }], finish });
      return finish === null;
    });
    return stream;
  }

  loadAdapter(): Promise<never> {
    return Promise.reject(new Error("no adapters"));
  }

  async unloadAdapter(): Promise<void> {}

  stats(): EngineStats {
    return new StatCells().read();
  }

  healthy(): boolean {
    return true;
  }

  async close(): Promise<void> {}
}
