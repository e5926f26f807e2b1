// Reads a checkpoint's tensors into a graph, in the weight type that the operator chose. Serving and training both take
// their weights from here, so they compute with the same numbers.

import type { Graph, Value } from "../graph/graph.ts";
import { joinRows } from "../graph/join-rows.ts";
import { matmul } from "../graph/ops.ts";
import type { Checkpoint } from "./checkpoint/checkpoint.ts";
import type { LinearName, LinearTensors, TensorSpec } from "./checkpoint/expected-tensors.ts";
import { type Site, siteParts } from "./decoder.ts";
import { usableWeights } from "./linear/int4-probe.ts";
import { type DigitSteps, probeDigitSteps } from "./linear/int8-probe.ts";
import { effectiveWeights, type LinearWeights, linear, type WeightType } from "./linear/linear.ts";
import { type MatrixRows, rowsOfTensors } from "./linear/matrix-rows.ts";

export interface WeightOptions {
  weightType: WeightType;
  digitSteps: DigitSteps;
}

/** How this machine stores weights of a type. Serving and training share it, so they compute the same numbers. */
export async function weightOptions(type: WeightType): Promise<WeightOptions> {
  const weightType = await usableWeights(type);
  return { weightType, digitSteps: weightType === "float32" ? 127 : await probeDigitSteps() };
}

export class WeightSource {
  readonly #g: Graph;
  readonly #checkpoint: Checkpoint;
  readonly #type: WeightType;
  readonly #digitSteps: DigitSteps;

  constructor(g: Graph, checkpoint: Checkpoint, options: WeightOptions) {
    this.#g = g;
    this.#checkpoint = checkpoint;
    this.#type = options.weightType;
    this.#digitSteps = options.digitSteps;
  }

  norm(spec: TensorSpec): Value {
    return this.#g.initializer(spec.name, spec.shape, this.#normWeights(spec));
  }

  norms(layer: number) {
    const tensors = this.#checkpoint.tensors.layers[layer]!;
    const optional = (spec: TensorSpec | null) => (spec === null ? null : this.norm(spec));
    return {
      attentionNorm: this.norm(tensors.attentionNorm),
      attentionPostNorm: optional(tensors.attentionPostNorm),
      mlpNorm: this.norm(tensors.mlpNorm),
      mlpPostNorm: optional(tensors.mlpPostNorm),
      qkNorm: tensors.qNorm === null || tensors.kNorm === null ? null : this.#qkNorm(tensors.qNorm, tensors.kNorm),
    };
  }

  #qkNorm(q: TensorSpec, k: TensorSpec): Value {
    const { numHeads, numKvHeads, headDim } = this.#checkpoint.config;
    const [ofQueries, ofKeys] = [this.#normWeights(q), this.#normWeights(k)];
    const weights = new Float32Array((numHeads + numKvHeads) * headDim);
    for (let head = 0; head < numHeads + numKvHeads; head++) {
      weights.set(head < numHeads ? ofQueries : ofKeys, head * headDim);
    }
    return this.#g.initializer(`${q.name}+${k.name}`, [numHeads + numKvHeads, 1, headDim], weights);
  }

  #normWeights(spec: TensorSpec): Float32Array {
    const offset = this.#checkpoint.config.normWeightOffset;
    const weights = this.#checkpoint.tensor(spec.name).read();
    if (offset !== 0) for (let i = 0; i < weights.length; i++) weights[i] = weights[i]! + offset;
    return weights;
  }

  /** The stored maps of a site, or some of them, as one map. x as for `linear`. */
  site(g: Graph, layer: number, site: Site, x: Value, maps = siteParts[site]): Value {
    return linear(g, x, this.#weightsOf(layer, maps), this.#type);
  }

  /** The gradient with respect to the output [n, out] -> to the input [n, in]. */
  siteGradient(g: Graph, layer: number, site: Site, dy: Value, maps = siteParts[site]): Value {
    return throughWeights(g, dy, this.#weightsOf(layer, maps), this.#type);
  }

  /** x: [m, hidden] or [m, 1, hidden] -> logits with the same leading dimensions. */
  head(g: Graph, x: Value): Value {
    return linear(g, x, this.#headWeights(), this.#headType);
  }

  /** [m, vocab] -> [m, hidden]. */
  headGradient(g: Graph, dy: Value): Value {
    return throughWeights(g, dy, this.#headWeights(), this.#headType);
  }

  /** The head of an int4 model is int8. */
  get #headType(): WeightType {
    return this.#type === "int4" ? "int8" : this.#type;
  }

  #headWeights(): LinearWeights {
    const { head, embedding } = this.#checkpoint.tensors;
    const weight = this.#rowsOf([head ?? embedding]);
    return { name: "head", weight, bias: null, digitSteps: this.#digitSteps };
  }

  #weightsOf(layer: number, maps: readonly LinearName[]): LinearWeights {
    const parts = maps.map((name) => this.#checkpoint.tensors.layers[layer]!.linears[name]);
    return {
      name: `layers.${layer}.${maps.join("+")}`,
      weight: this.#rowsOf(parts.map((part) => part.weight)),
      bias: this.#biasOf(parts),
      digitSteps: this.#digitSteps,
    };
  }

  #rowsOf(specs: readonly TensorSpec[]): MatrixRows {
    return rowsOfTensors(specs.map(({ name }) => this.#checkpoint.tensor(name)));
  }

  /** [out]; null if no map has a bias. */
  #biasOf(parts: readonly LinearTensors[]): Float32Array | null {
    if (parts.every(({ bias }) => bias === null)) return null;
    const values = parts.map(({ weight, bias }) =>
      bias === null ? new Float32Array(weight.shape[0]!) : this.#checkpoint.tensor(bias.name).read(),
    );
    return joinRows(values);
  }
}

/** dy · W, with weights in their stored order: a copy beside the one that `linear` uses. */
function throughWeights(g: Graph, dy: Value, weights: LinearWeights, type: WeightType): Value {
  const { out, inputs } = weights.weight;
  const effective = effectiveWeights(weights.weight, type, g.memory.take(Float32Array, out * inputs));
  return matmul(g, dy, g.initializer(`${weights.name}.back`, [out, inputs], effective));
}
