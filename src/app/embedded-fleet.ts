// Several embedded engines that share this machine's cores (`--data-parallel-size`). A step of a small model is too
// little work for many threads, so several engines of few threads generate more tokens than one of many. They share the
// embedding. The runtime packs the other weights into memory of its own, once per engine.

import type { Engine } from "../engine/contract.ts";
import { FleetEngine, type FleetOptions } from "../engine/fleet/fleet-engine.ts";
import { LocalReplica } from "../engine/fleet/local-replica.ts";
import { replicaAlias } from "../engine/fleet/replica.ts";
import { DEFAULT_SCHEDULING } from "../engine/scheduling.ts";
import { OperatorError } from "../errors/faults.ts";
import { openCheckpoint } from "../model/checkpoint/checkpoint.ts";
import { eachTensor } from "../model/checkpoint/expected-tensors.ts";
import { sharedEmbedding } from "../model/embedding.ts";
import { createEmbeddedEngine, type EmbeddedOptions, kvCacheBytes, usableMemory } from "./embedded-engine.ts";
import { usableCores } from "./usable-cores.ts";

export interface EmbeddedFleetOptions extends EmbeddedOptions {
  /** Number of engines; "auto": by cores and the model's size. */
  engines: number | "auto";
  fleet: Omit<FleetOptions, "prefixCaching">;
}

export async function createEmbeddedEngines(options: EmbeddedFleetOptions): Promise<Engine> {
  const { engines: wanted, fleet, ...each } = options;
  const threads = options.threads ?? usableCores();
  const engines = wanted === "auto" ? automaticEngines(threads, weightsOf(options.folder), usableMemory()) : wanted;
  if (engines > threads) {
    throw new OperatorError(
      `--data-parallel-size ${engines} is more than the ${threads} threads that they would share`,
    );
  }
  if (engines === 1) return createEmbeddedEngine(each);
  const embedding = embeddingOf(options.folder);
  const bytes = Math.floor(kvCacheBytes(options) / engines);
  const started = await Promise.allSettled(
    shares(threads, engines).map((share) =>
      createEmbeddedEngine({ ...each, threads: share, kvCacheBytes: bytes, embedding }),
    ),
  );
  const running = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const failed = started.find((result) => result.status === "rejected");
  if (failed !== undefined) {
    await Promise.all(running.map((engine) => engine.close()));
    throw failed.reason;
  }
  const { prefixCaching = true, maxNumSeqs = DEFAULT_SCHEDULING.maxNumSeqs } = options.scheduling ?? {};
  const replicas = running.map((engine, i) => new LocalReplica(replicaAlias(i), engine, maxNumSeqs));
  return FleetEngine.start(replicas, { ...fleet, prefixCaching });
}

/** As equal as possible. */
export function shares(threads: number, engines: number): number[] {
  return Array.from({ length: engines }, (_, i) => Math.floor(threads / engines) + (i < threads % engines ? 1 : 0));
}

/**
 * A model of up to 150 million weights gets two threads per engine, up to a billion four, a larger one eight. All
 * engines together take at most a quarter of the memory for their copies of the weights, two bytes for each.
 */
export function automaticEngines(threads: number, weights: number, memory: number): number {
  const perEngine = weights <= 150e6 ? 2 : weights <= 1e9 ? 4 : 8;
  return Math.max(1, Math.min(Math.floor(threads / perEngine), Math.floor(memory / 4 / (2 * weights))));
}

function weightsOf(folder: string): number {
  const { tensors, close } = openCheckpoint(folder);
  close();
  const sizes = [...eachTensor(tensors)].map(({ shape }) => shape.reduce((size, length) => size * length, 1));
  return sizes.reduce((sum, size) => sum + size, 0);
}

function embeddingOf(folder: string): SharedArrayBuffer {
  const checkpoint = openCheckpoint(folder);
  try {
    return sharedEmbedding(checkpoint);
  } finally {
    checkpoint.close();
  }
}
