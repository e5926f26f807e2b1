// Policies: loads two adapters of the largest rank that Flywheel may train, sees that each changes the model in its own
// way and leaves the base model alone, and unloads them.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { linearShape } from "../../model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import type { LinearName } from "../../model/families/tensor-names.ts";
import { createAdapter, type LoraPair } from "../../model/lora/lora-adapter.ts";
import { savePeft } from "../../model/lora/peft.ts";
import { seededRandom } from "../../training/random.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import { vllmRank } from "./launch-flags.check.ts";
import { type Bench, type Completion, errorText, ReplicaError, TOP } from "./replica.ts";

// Makes a small LoRA adapter of the model's shape: random factors for the queries and values of the first layer, large
// enough to change every reply. The same seed gives the same adapter.

/** Of what the adapter adds. At 1, a sure model hardly notices. */
const SCALE = 16;

/** Writes a new PEFT folder. */
export function writeProbeAdapter(folder: string, config: ModelConfig, rank: number, seed: number): void {
  const next = normalNumbers(seed);
  const pair = (name: LinearName): LoraPair => {
    const [outSize, inSize] = linearShape(config, name);
    return {
      a: Float32Array.from({ length: rank * inSize }, () => next() / Math.sqrt(inSize)),
      b: Float32Array.from({ length: outSize * rank }, () => next() / Math.sqrt(rank)),
    };
  };
  const names = config.layers[0]!.maps.qkv.filter((name) => name !== "k");
  const first = Object.fromEntries(names.map((name) => [name, pair(name)]));
  const layers = Array.from({ length: config.numLayers }, (_, layer) => (layer === 0 ? first : {}));
  const adapter = createAdapter(config, { rank, alpha: SCALE * rank, rankStabilised: false, layers });
  savePeft(folder, adapter, config, { baseModel: "base" });
}

/** Numbers of about a standard normal distribution. */
function normalNumbers(seed: number): () => number {
  const uniform = seededRandom(seed);
  return () => uniform() + uniform() + uniform() + uniform() + uniform() + uniform() - 3;
}

export async function* checkAdapters(bench: Bench): AsyncGenerator<Finding> {
  const { ours, replica } = bench;
  const { shape } = ours;
  if (shape === null) {
    const advice = "Load an adapter of yours with /v1/load_lora_adapter and compare its replies.";
    yield warning("lora-load", "not checked: Flywheel does not know the shape of this model", advice);
    return;
  }
  mkdirSync(ours.data, { recursive: true });
  const folder = mkdtempSync(join(ours.data, "doctor-"));
  const names = ["a", "b"].map((letter) => `flywheel-doctor-${folder.slice(-6)}-${letter}`);
  const loaded: string[] = [];
  try {
    for (const [i, name] of names.entries()) {
      const path = join(folder, name);
      writeProbeAdapter(path, shape, ours.maxLoraRank, i + 1);
      const { status, body } = await replica.post("/v1/load_lora_adapter", { lora_name: name, lora_path: path });
      if (status !== 200) {
        yield refusedLoad(bench, status, errorText(body));
        return;
      }
      loaded.push(name);
    }
    yield ok("lora-load", `adapters of rank ${ours.maxLoraRank} load from ${ours.data}`);
    yield* effects(bench, names);
    yield* unloading(bench, loaded);
  } finally {
    for (const name of loaded) await replica.post("/v1/unload_lora_adapter", { lora_name: name }).catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  }
}

function refusedLoad({ ours }: Bench, status: number, reason: string): Finding {
  const detail = `loading an adapter gives ${status}: ${reason}`;
  const rank = vllmRank(ours.maxLoraRank);
  if (/rank/i.test(reason)) return wrong("lora-load", detail, `Start vLLM with --max-lora-rank ${rank}.`);
  if (status === 401 || status === 403) {
    return wrong(
      "lora-load",
      detail,
      "Give --engine-api-key a token that may load adapters: on Flywheel, scope admin.",
    );
  }
  const advice =
    status === 404 || /No such|not found|does not exist|no adapter/i.test(reason)
      ? `Mount the data folder (--data) on the replica under the same path: ${ours.data}.`
      : `Check that the replica serves this very model, with --max-lora-rank ${rank}, and look at its log.`;
  return wrong("lora-load", detail, advice);
}

/** The reply under each adapter differs from the others' and from the base model's, which stays as it was. */
async function* effects(bench: Bench, names: readonly string[]): AsyncGenerator<Finding> {
  const { replica, served, prompt } = bench;
  const ask = (model: string) => replica.complete(model, prompt, { max_tokens: 4, logprobs: TOP });
  const base = await bench.greedy();
  const [a, b] = [await ask(names[0]!), await ask(names[1]!)];
  const again = await ask(served.name);
  const advice =
    "Start vLLM with --enable-lora, without a proxy that rewrites model names. Policies would all answer alike.";
  if (isSame(a, base) || isSame(b, base)) yield wrong("lora-effect", "an adapter does not change the model", advice);
  else if (isSame(a, b)) yield wrong("lora-effect", "two adapters answer alike", advice);
  else if (!isSame(again, base)) yield wrong("lora-effect", "an adapter changes the base model", advice);
  else yield ok("lora-effect", "each adapter changes its own replies and no others");
}

/** vLLM forgets the name. An answer under it would come from an adapter that Flywheel has deleted. */
async function* unloading({ replica, prompt }: Bench, loaded: string[]): AsyncGenerator<Finding> {
  const name = loaded.shift()!;
  const { status, body } = await replica.post("/v1/unload_lora_adapter", { lora_name: name });
  if (status !== 200) {
    const advice = "Adapters would pile up in the replica's memory. Update vLLM.";
    yield warning("lora-unload", `unloading gives ${status}: ${errorText(body)}`, advice);
    return;
  }
  try {
    await replica.complete(name, prompt, { max_tokens: 1 });
    yield warning(
      "lora-unload",
      "the name answers after it was unloaded",
      "Look for a resolver plugin (VLLM_PLUGINS).",
    );
  } catch (error) {
    if (!(error instanceof ReplicaError)) throw error;
    yield ok("lora-unload", "an unloaded name is gone");
  }
}

/** Whether two replies have the same first candidates, up to rounding. */
function isSame(one: Completion, other: Completion): boolean {
  const [left, right] = [one.top[0] ?? new Map<number, number>(), other.top[0] ?? new Map<number, number>()];
  return [...left].every(([id, logprob], rank) =>
    right.has(id) ? Math.abs(logprob - right.get(id)!) < 0.1 : rank >= TOP - 1,
  );
}
