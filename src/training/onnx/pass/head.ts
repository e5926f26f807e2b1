// Runs the output head over the hidden states that predict trained tokens. It works in pieces, so that the logits of a
// long sequence never exist all at once.

import { bools, floats, GraphSession, int64s, type SessionOptions } from "../../../graph/session.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { WeightOptions } from "../../../model/weight-source.ts";
import type { Read } from "../packing/micro-batch.ts";
import { headPiece } from "../packing/piece-sizes.ts";
import { buildHeadGraph } from "./head-graph.ts";

export interface HeadResult {
  /** One per read. */
  logprobs: Float32Array;
  entropies: Float32Array;
  /** d logprob / d hidden state: [reads, hidden]; empty unless `directed`. */
  directions: Float32Array;
}

export class Head {
  readonly #config: ModelConfig;
  readonly #session: GraphSession;

  private constructor(config: ModelConfig, session: GraphSession) {
    this.#config = config;
    this.#session = session;
  }

  static async create(checkpoint: Checkpoint, options: WeightOptions & SessionOptions): Promise<Head> {
    const session = await GraphSession.create(buildHeadGraph(checkpoint, options), options);
    return new Head(checkpoint.config, session);
  }

  /** hidden: [n, hidden] before the final norm. */
  async run(hidden: Float32Array, reads: readonly Read[], directed: boolean): Promise<HeadResult> {
    const width = this.#config.hiddenSize;
    const result = {
      logprobs: new Float32Array(reads.length),
      entropies: new Float32Array(reads.length),
      directions: new Float32Array(directed ? reads.length * width : 0),
    };
    const size = headPiece(this.#config);
    for (let from = 0; from < reads.length; from += size) {
      const piece = reads.slice(from, from + size);
      const m = piece.length;
      const states = new Float32Array(m * width);
      for (const [i, { row }] of piece.entries()) {
        states.set(hidden.subarray(row * width, (row + 1) * width), i * width);
      }
      const { logprob, entropy, direction } = await this.#session.run({
        hidden: floats(states, [m, width]),
        target: int64s(
          BigInt64Array.from(piece, ({ target }) => BigInt(target)),
          [m, 1],
        ),
        directed: bools(Uint8Array.of(directed ? 1 : 0), []),
      });
      result.logprobs.set(logprob!.data as Float32Array, from);
      result.entropies.set(entropy!.data as Float32Array, from);
      if (directed) result.directions.set(direction!.data as Float32Array, from * width);
    }
    return result;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}
