// Writes a checkpoint as a GGUF file for llama.cpp: the same numbers under llama.cpp's names and in its layouts.

import type { Checkpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { LinearTensors, NormTensors, TensorSpec } from "../../src/model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { inverseFrequencies } from "../../src/model/checkpoint/rope.ts";
import type { LinearName } from "../../src/model/families/tensor-names.ts";
import { blockOf, type GgmlType } from "./ggml-blocks.ts";
import { type GgufTensor, type GgufValue, writeGguf } from "./gguf.ts";
import { ARCHITECTURE, ggufMetadata } from "./gguf-metadata.ts";

const LINEAR: Readonly<Record<LinearName, string>> = {
  ...{ q: "attn_q", k: "attn_k", v: "attn_v", qkv: "attn_qkv", o: "attn_output" },
  ...{ gate: "ffn_gate", up: "ffn_up", gate_up: "ffn_up", down: "ffn_down" },
};
const NORM = {
  ...{ attention: "attn_norm", attentionPost: "post_attention_norm", mlp: "ffn_norm", mlpPost: "post_ffw_norm" },
};
/** Architectures in which llama.cpp rotates neighbours. */
const INTERLEAVED = ["llama", "granite", "smollm3"];
/** Architectures whose files have windows. */
const WINDOWED = ["gemma2", "gemma3", "phi3"];

/**
 * Writes matrices as `type`, and norms and biases as f32. In a q4_0 file the output head is q8_0, because ours is int8.
 * `tokenizer` replaces entries of the placeholder.
 */
export function writeGgufModel(
  checkpoint: Checkpoint,
  path: string,
  type: GgmlType,
  tokenizer: Readonly<Record<string, GgufValue>> = {},
): void {
  const { config } = checkpoint;
  const windowed = config.layers.some((layer) => layer.window !== null);
  if (windowed && !WINDOWED.includes(ARCHITECTURE[config.family])) {
    throw new Error(`GGUF files of ${config.family} models have no windows`);
  }
  const sparse = config.layers.filter((layer) => layer.experts?.normalised);
  if (config.family === "qwen3_moe" && sparse.length < config.numLayers) {
    throw new Error("GGUF files of qwen3_moe models have experts in every layer, with weights that add up to 1");
  }
  writeGguf(path, { ...ggufMetadata(config, type), ...tokenizer }, new TensorList(checkpoint, type).all());
}

type Change = (values: Float32Array) => Float32Array;

class TensorList {
  readonly #checkpoint: Checkpoint;
  readonly #type: GgmlType;
  readonly #tensors: GgufTensor[] = [];

  constructor(checkpoint: Checkpoint, type: GgmlType) {
    this.#checkpoint = checkpoint;
    this.#type = type;
  }

  all(): GgufTensor[] {
    const { config, tensors: source } = this.#checkpoint;
    const headType = this.#type === "q4_0" ? "q8_0" : this.#type;
    this.#add("token_embd.weight", source.embedding, source.head === null ? headType : this.#type);
    if (source.positions !== null) this.#add("position_embd.weight", source.positions, "f32");
    if (source.head !== null) this.#add("output.weight", source.head, headType);
    this.#norm("output_norm", source.finalNorm);
    for (const [name, factors] of ropeFactors(config)) {
      this.#tensors.push({ name, shape: [factors.length], type: "f32", read: () => factors });
    }
    for (const layer of source.layers.keys()) this.#layer(layer);
    return this.#tensors;
  }

  #layer(index: number): void {
    const { norms, linears, qNorm, kNorm, experts } = this.#checkpoint.tensors.layers[index]!;
    const block = `blk.${index}.`;
    for (const [place, norm] of Object.entries(norms)) this.#norm(block + NORM[place as keyof typeof NORM], norm);
    this.#norm(`${block}attn_q_norm`, qNorm === null ? null : { weight: qNorm, bias: null });
    this.#norm(`${block}attn_k_norm`, kNorm === null ? null : { weight: kNorm, bias: null });
    for (const [name, linear] of Object.entries(linears)) this.#linear(block, name as LinearName, linear);
    if (experts === null) return;
    this.#add(`${block}ffn_gate_inp.weight`, experts.router, "f32");
    for (const name of ["gate", "up", "down"] as const) {
      const specs = experts.experts.map((expert) => expert[name].weight);
      const shape = [specs.length, ...specs[0]!.shape];
      const read = () => Float32Array.from(specs.flatMap((spec) => [...this.#checkpoint.tensor(spec.name).read()]));
      this.#tensors.push({
        name: `${block}ffn_${name}_exps.weight`,
        shape,
        type: this.#fitting(shape, this.#type),
        read,
      });
    }
  }

  #linear(block: string, name: LinearName, { weight, bias, transposed }: LinearTensors): void {
    const { config } = this.#checkpoint;
    const turned = INTERLEAVED.includes(ARCHITECTURE[config.family]) && (name === "q" || name === "k");
    const change: Change = (x) => (turned ? interleaveHalves(x, config.headDim, weight.shape[0]!) : x);
    const [rows, columns] = weight.shape as [number, number];
    const stored = transposed ? { ...weight, shape: [columns, rows] } : weight;
    this.#add(`${block}${LINEAR[name]}.weight`, stored, this.#type, transposed ? (x) => turn(x, rows) : change);
    if (bias !== null) this.#add(`${block}${LINEAR[name]}.bias`, bias, "f32", change);
  }

  /** Files have the weights that are multiplied with. */
  #norm(name: string, norm: NormTensors | null): void {
    const offset = this.#checkpoint.config.normWeightOffset;
    if (norm === null) return;
    this.#add(`${name}.weight`, norm.weight, "f32", (x) => x.map((value) => value + offset));
    if (norm.bias !== null) this.#add(`${name}.bias`, norm.bias, "f32");
  }

  #add(name: string, spec: TensorSpec, wanted: GgmlType, change: Change = (x) => x): void {
    const read = () => change(this.#checkpoint.tensor(spec.name).read());
    this.#tensors.push({ name, shape: spec.shape, type: this.#fitting(spec.shape, wanted), read });
  }

  #fitting(shape: readonly number[], wanted: GgmlType): GgmlType {
    return shape.at(-1)! % blockOf(wanted) === 0 ? wanted : "f16";
  }
}

/** [rows, columns] -> [columns, rows] */
function turn(values: Float32Array, rows: number): Float32Array {
  const columns = values.length / rows;
  return values.map((_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
}

/**
 * Hugging Face rotates dimension j of a head with dimension j + headDim / 2. llama.cpp's Llama rotates neighbours. So the
 * rows of every head are reordered: 0, half, 1, half + 1, ... The products of queries and keys do not change.
 */
export function interleaveHalves(weights: Float32Array, headDim: number, rows: number): Float32Array {
  const width = weights.length / rows;
  const half = headDim / 2;
  const result = new Float32Array(weights.length);
  for (let row = 0; row < rows; row++) {
    const inHead = row % headDim;
    const source = row - inHead + (inHead % 2) * half + Math.floor(inHead / 2);
    result.set(weights.subarray(source * width, (source + 1) * width), row * width);
  }
  return result;
}

/** Tensors of divisors that llama.cpp applies to the plain rotary frequencies. */
function ropeFactors(config: ModelConfig): [name: string, factors: Float32Array][] {
  const rope = config.layers.find((layer) => layer.rope !== null)?.rope ?? null;
  if (rope === null || rope.scaling === null) return [];
  if (rope.scaling.type === "longrope") {
    return [
      ["rope_factors_long.weight", Float32Array.from(rope.scaling.longFactors)],
      ["rope_factors_short.weight", Float32Array.from(rope.scaling.shortFactors)],
    ];
  }
  if (rope.attentionFactor !== 1) {
    throw new Error(`the benchmark writes no GGUF for models with ${rope.scaling.type} rotary scaling`);
  }
  const scaled = inverseFrequencies(rope, config.headDim);
  const plain = inverseFrequencies({ ...rope, scaling: null }, config.headDim);
  return [["rope_freqs.weight", Float32Array.from(plain, (frequency, i) => frequency / scaled[i]!)]];
}
