// Drives a DecoderRunner by hand for reference tests: sequences with their own blocks, token by token or in chunks.
// Reads the reference numbers of a fixture.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { modulePath } from "../../src/model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { SafetensorsFile } from "../../src/model/checkpoint/safetensors.ts";
import { DecoderRunner, type DecoderRunnerOptions } from "../../src/model/decoder-runner.ts";
import { mapsOf } from "../../src/model/families/tensor-names.ts";
import type { Chunk } from "../../src/model/runner.ts";

export const families = [
  ...(["llama", "llama3", "qwen2", "qwen3", "mistral", "gemma2", "gemma3"] as const),
  ...(["olmo2", "granite", "smollm3", "phi3", "phi4-mini", "gpt2", "qwen3-moe", "qwen3-moe-plain"] as const),
];
export type Family = (typeof families)[number];

/** Types of weights that a test runs the nth model with: all, but one in turn in `npm run test:system`. The matrix has the others. */
export function typesFor<Type>(types: readonly Type[], n: number): readonly Type[] {
  return process.env.FLYWHEEL_TIER === "system" ? [types[n % types.length]!] : types;
}

export function fixtureFolder(family: Family): string {
  return fileURLToPath(new URL(`../fixtures/${family}`, import.meta.url));
}

export async function openRunner(folder: string, options: Partial<DecoderRunnerOptions> = {}): Promise<DecoderRunner> {
  const checkpoint = openCheckpoint(folder);
  try {
    return await DecoderRunner.create(checkpoint, {
      weightType: "float32",
      threads: 1,
      positionsPerBlock: 16,
      numBlocks: 512,
      maxPositions: 512,
      maxLoras: 2,
      maxLoraRank: 8,
      adaptersFromStart: false,
      ...options,
    });
  } finally {
    checkpoint.close();
  }
}

/** A sequence with its own blocks: `first` .. `first + count - 1`. */
export function blocksFrom(first: number, tokens: number, positionsPerBlock: number): Int32Array {
  return Int32Array.from({ length: Math.ceil(tokens / positionsPerBlock) }, (_, i) => first + i);
}

export function chunk(tokens: readonly number[], start: number, blocks: Int32Array, rest: Partial<Chunk> = {}): Chunk {
  return { tokens: Int32Array.from(tokens), start, blocks, adapterSlot: 0, logits: "all", ...rest };
}

/** Runs one chunk alone and keeps its logits. */
export async function runAlone(runner: DecoderRunner, one: Chunk): Promise<Float32Array> {
  const [logits] = await runner.forward([one]);
  return Float32Array.from(logits!);
}

/** Log-softmax of a row, in float64. */
export function logSoftmax(row: Float32Array): Float64Array {
  let largest = Number.NEGATIVE_INFINITY;
  for (const logit of row) largest = Math.max(largest, logit);
  let sum = 0;
  for (const logit of row) sum += Math.exp(logit - largest);
  const normaliser = largest + Math.log(sum);
  return Float64Array.from(row, (logit) => logit - normaliser);
}

/** Largest difference in log-probability over all rows. */
export function worstDifference(got: Float32Array, expected: Float32Array, vocab: number): number {
  let worst = got.length === expected.length ? 0 : Number.POSITIVE_INFINITY;
  for (let at = 0; at < got.length; at += vocab) {
    const a = logSoftmax(got.subarray(at, at + vocab));
    const b = logSoftmax(expected.subarray(at, at + vocab));
    for (let i = 0; i < vocab; i++) worst = Math.max(worst, Math.abs(a[i]! - b[i]!));
  }
  return worst;
}

export function argmax(row: Float32Array | Float64Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}

/** The parameter that an adapter's tensor holds: "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" -> "0.q.a". */
export function parameterOf(config: ModelConfig, tensor: string): string {
  const [, layer, module, factor] = /\.(?:layers|h)\.(\d+)\.(.+)\.lora_([AB])\.weight$/.exec(tensor)!;
  const name = mapsOf(config.layers[Number(layer)]!).find((each) => modulePath(config, each) === module);
  return `${layer}.${name}.${factor!.toLowerCase()}`;
}

/** The numbers of a fixture (test/fixtures/README.md). */
export class Reference {
  readonly greedy: readonly (readonly number[])[];
  readonly #file: SafetensorsFile;

  constructor(family: Family) {
    const folder = fixtureFolder(family);
    this.#file = SafetensorsFile.open(join(folder, "reference.safetensors"));
    this.greedy = JSON.parse(readFileSync(join(folder, "reference.json"), "utf8")).greedy;
  }

  floats(name: string): Float32Array {
    return this.#file.read(name);
  }

  ids(name: string): number[] {
    const bytes = this.#file.readBytes(name);
    return Array.from(new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8), Number);
  }

  close(): void {
    this.#file.close();
  }
}
