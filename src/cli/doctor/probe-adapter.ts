// Makes a small LoRA adapter of the model's shape: random factors for the queries and values of the first layer, large
// enough to change every reply. The same seed gives the same adapter.

import { linearShape } from "../../model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import type { LinearName } from "../../model/checkpoint/sites.ts";
import { createAdapter, type LoraPair } from "../../model/lora/lora-adapter.ts";
import { savePeft } from "../../model/lora/peft.ts";

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
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return () => uniform() + uniform() + uniform() + uniform() + uniform() + uniform() - 3;
}
