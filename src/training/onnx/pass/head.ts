// Runs the output head over the hidden states that predict trained tokens. It works in pieces, so that the logits of a
// long sequence never exist all at once.
import { gradients } from "../../../graph/grad.ts";
import { Graph, type Value } from "../../../graph/graph.ts";
import { choose, exp, mul, neg, reduceSum, reshape, scalar, sub } from "../../../graph/ops.ts";
import { bools, floats, GraphSession, int64s, type SessionOptions } from "../../../graph/session.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { finishLogits } from "../../../model/decoder.ts";
import { type WeightOptions, WeightSource } from "../../../model/weight-source.ts";
import type { Read } from "../packing/micro-batch.ts";
import { headPiece } from "../packing/pack-plan.ts";

// The output head for training. Given hidden states and the tokens that follow them, it computes the tokens'
// log-probabilities, the entropies, and the gradient of each log-probability with respect to its hidden state, called
// its direction. The gradient of any loss is then d loss / d logprob times that direction. So the logits, the largest
// tensor of a language model, are neither kept nor computed twice.

/**
 * Inputs: hidden [m, hidden] before the final norm · target int64 [m, 1] · directed: bool, whether to compute directions.
 * Outputs: logprob [m] · entropy [m] · direction [m, hidden], or [0, hidden] if not directed.
 */
function buildHeadGraph(checkpoint: Checkpoint, weightOptions: WeightOptions): Graph {
  const { config } = checkpoint;
  const g = new Graph();
  const weights = new WeightSource(g, checkpoint, weightOptions);
  const hidden = g.input("hidden", ["m", config.hiddenSize]);
  const target = g.input("target", ["m", 1], "int64");
  const directed = g.input("directed", [], "bool");
  const normed = weights.finalNorm(g, hidden);
  const raw = weights.head(g, normed);
  const logits = finishLogits(g, config, raw);
  const logprobs = g.add("LogSoftmax", [logits], [{ shape: logits.shape }], { axis: -1 })[0]!;
  const probabilities = exp(g, logprobs);
  const ofTarget = (at: Graph, x: Value) =>
    at.add("GatherElements", [x, target], [{ shape: ["m", 1] }], { axis: 1 })[0]!;
  g.output("logprob", reshape(g, ofTarget(g, logprobs), ["m"]));
  g.output("entropy", neg(g, reduceSum(g, mul(g, probabilities, logprobs), 1)));

  const direction = (at: Graph) => {
    // d logprob / d logits = (1 at the target) - probability
    const less = sub(at, ofTarget(at, probabilities), scalar(at, 1));
    const inputs = [probabilities, target, less];
    const opposite = at.add("ScatterElements", inputs, [{ shape: logits.shape }], { axis: 1 })[0]!;
    const dRaw = logits === raw ? opposite : gradients(g, new Map([[logits, opposite]]), [raw], at)[0]!;
    const dNormed = weights.headGradient(at, dRaw);
    return neg(at, gradients(g, new Map([[normed, dNormed]]), [hidden], at)[0]!);
  };
  const none = g.constant(new Float32Array(0), [0, config.hiddenSize]);
  const shape = ["d", config.hiddenSize];
  const [chosen] = choose(g, directed, [shape], { yes: (at) => [direction(at)], no: () => [none] });
  g.output("direction", chosen!);
  return g;
}

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
