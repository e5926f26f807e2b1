// Reads a checkpoint's tensors into a graph, in the weight type that the operator chose. Serving and training both take
// their weights from here, so they compute with the same numbers.

import type { Graph, Value } from "../graph/graph.ts";
import { joinRows } from "../graph/join-rows.ts";
import { layerNorm, matmul, rmsNorm } from "../graph/ops.ts";
import { hasKernels } from "../graph/session.ts";
import type { Checkpoint } from "./checkpoint/checkpoint.ts";
import type { LinearTensors, NormTensors, TensorSpec } from "./checkpoint/expected-tensors.ts";
import type { LayerNorms } from "./decoder.ts";
import type { LinearName, Site } from "./families/tensor-names.ts";
import { withCompanion } from "./linear/int4-companion.ts";
import { usableWeights } from "./linear/int4-probe.ts";
import { type Digits, probeDigitSteps } from "./linear/int8-probe.ts";
import { effectiveWeights, type LinearWeights, linear, type WeightType } from "./linear/linear.ts";
import { type MatrixRows, rowsOfTensors, rowsOfTransposed } from "./linear/matrix-rows.ts";
import type { MlpSite } from "./mlp.ts";
import { headNorm, type QkNorm, widthNorm } from "./qk-norm.ts";

export interface WeightOptions {
  weightType: WeightType;
  digits: Digits;
}

/** How this machine stores weights of a type. Serving and training share it, so they compute the same numbers. */
export async function weightOptions(type: WeightType): Promise<WeightOptions> {
  if (hasKernels) return { weightType: type, digits: "native" };
  const weightType = await usableWeights(type);
  return { weightType, digits: weightType === "float32" ? 127 : await probeDigitSteps() };
}

export class WeightSource {
  readonly #g: Graph;
  readonly #checkpoint: Checkpoint;
  readonly #type: WeightType;
  readonly #digits: Digits;

  constructor(g: Graph, checkpoint: Checkpoint, options: WeightOptions) {
    this.#g = g;
    this.#checkpoint = checkpoint;
    this.#type = options.weightType;
    this.#digits = options.digits;
  }

  finalNorm(g: Graph, x: Value): Value {
    return this.#norm(this.#checkpoint.tensors.finalNorm)(g, x);
  }

  norms(layer: number): LayerNorms {
    const { norms, qNorm, kNorm } = this.#checkpoint.tensors.layers[layer]!;
    return {
      attention: this.#norm(norms.attention),
      attentionPost: this.#norm(norms.attentionPost),
      mlp: this.#norm(norms.mlp),
      mlpPost: this.#norm(norms.mlpPost),
      queriesAndKeys: qNorm === null || kNorm === null ? null : this.#qkNorm(qNorm, kNorm),
    };
  }

  #norm(tensors: NormTensors | null): LayerNorms["mlp"] {
    if (tensors === null) return unchanged;
    const { normEps } = this.#checkpoint.config;
    const { weight: spec, bias: biasSpec } = tensors;
    const weight = this.#g.initializer(spec.name, spec.shape, this.#normWeights(spec));
    if (biasSpec === null) return (g, x) => rmsNorm(g, x, weight, normEps);
    const bias = this.#g.initializer(biasSpec.name, biasSpec.shape, this.#checkpoint.tensor(biasSpec.name).read());
    return (g, x) => layerNorm(g, x, weight, bias, normEps);
  }

  #qkNorm(q: TensorSpec, k: TensorSpec): QkNorm {
    const { config } = this.#checkpoint;
    const make = config.qkNorm === "width" ? widthNorm : headNorm;
    return make(this.#g, config, { name: `${q.name}+${k.name}`, q: this.#normWeights(q), k: this.#normWeights(k) });
  }

  #normWeights(spec: TensorSpec): Float32Array {
    const offset = this.#checkpoint.config.normWeightOffset;
    const weights = this.#checkpoint.tensor(spec.name).read();
    if (offset !== 0) for (let i = 0; i < weights.length; i++) weights[i] = weights[i]! + offset;
    return weights;
  }

  /** The stored linear layers of a site, or some of them, as one. x as for `linear`. */
  site(g: Graph, layer: number, site: Site, x: Value, maps = this.#mapsOf(layer, site)): Value {
    return linear(g, x, this.#weightsOf(layer, maps), this.#type);
  }

  /** The gradient with respect to the output [n, out] -> to the input [n, in]. */
  siteGradient(g: Graph, layer: number, site: Site, dy: Value, maps = this.#mapsOf(layer, site)): Value {
    return throughWeights(g, dy, this.#weightsOf(layer, maps), this.#type);
  }

  /** Logits of a layer's router, in float32 whatever the weight type: x [n, hidden] -> [n, experts]. */
  router(g: Graph, layer: number, x: Value): Value {
    return linear(g, x, this.#routerWeights(layer), "float32");
  }

  /** [n, experts] -> [n, hidden]. */
  routerGradient(g: Graph, layer: number, dy: Value): Value {
    return throughWeights(g, dy, this.#routerWeights(layer), "float32");
  }

  /** One expert's linear layers of a site as one. x as for `linear`. */
  expertSite(g: Graph, layer: number, expert: number, site: MlpSite, x: Value): Value {
    const map = (rows: Value) => linear(g, rows, this.#expertWeights(layer, expert, site), this.#type);
    return this.#type === "int4" && !hasKernels ? withCompanion(g, x, map) : map(x);
  }

  expertSiteGradient(g: Graph, layer: number, expert: number, site: MlpSite, dy: Value): Value {
    return throughWeights(g, dy, this.#expertWeights(layer, expert, site), this.#type);
  }

  #routerWeights(layer: number): LinearWeights {
    const { router } = this.#checkpoint.tensors.layers[layer]!.experts!;
    return this.#joined(`layers.${layer}.router`, [{ weight: router, transposed: false, bias: null }]);
  }

  #expertWeights(layer: number, expert: number, site: MlpSite): LinearWeights {
    const { gate, up, down } = this.#checkpoint.tensors.layers[layer]!.experts!.experts[expert]!;
    const name = `layers.${layer}.experts.${expert}.${site}`;
    return this.#joined(name, site === "down" ? [down] : [gate, up]);
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
    const weight = rowsOfTensors([this.#checkpoint.tensor((head ?? embedding).name)]);
    return { name: "head", weight, bias: null, digits: this.#digits };
  }

  #mapsOf(layer: number, site: Site): readonly LinearName[] {
    return this.#checkpoint.config.layers[layer]!.maps[site];
  }

  #weightsOf(layer: number, maps: readonly LinearName[]): LinearWeights {
    const parts = maps.map((name) => this.#checkpoint.tensors.layers[layer]!.linears[name]!);
    return this.#joined(`layers.${layer}.${maps.join("+")}`, parts);
  }

  #joined(name: string, parts: readonly LinearTensors[]): LinearWeights {
    return { name, weight: this.#rowsOf(parts), bias: this.#biasOf(parts), digits: this.#digits };
  }

  #rowsOf(parts: readonly LinearTensors[]): MatrixRows {
    const tensors = parts.map(({ weight }) => this.#checkpoint.tensor(weight.name));
    if (parts.some(({ transposed }) => transposed)) {
      if (tensors.length > 1) throw new Error("transposed linear layers of a site are stored as one");
      return rowsOfTransposed(tensors[0]!);
    }
    return rowsOfTensors(tensors);
  }

  /** [out]; null if no linear layer has a bias. */
  #biasOf(parts: readonly LinearTensors[]): Float32Array | null {
    if (parts.every(({ bias }) => bias === null)) return null;
    const values = parts.map(({ weight, bias }) =>
      bias === null ? new Float32Array(weight.shape[0]!) : this.#checkpoint.tensor(bias.name).read(),
    );
    return joinRows(values);
  }
}

/** In place of a norm that a family does not have. */
function unchanged(_g: Graph, x: Value): Value {
  return x;
}

/** dy · W, with weights in their stored order: a copy beside the one that `linear` uses. */
function throughWeights(g: Graph, dy: Value, weights: LinearWeights, type: WeightType): Value {
  const { out, inputs } = weights.weight;
  const effective = effectiveWeights(weights.weight, type, g.memory.take(Float32Array, out * inputs));
  return matmul(g, dy, g.initializer(`${weights.name}.back`, [out, inputs], effective));
}
