// A fleet for tests. An adapter's version is its folder's name, as in fake-adapters.ts.

import type { EngineOutput, Generation } from "../../src/engine/contract.ts";
import { FleetEngine, type FleetOptions } from "../../src/engine/fleet/fleet-engine.ts";
import type { Replica } from "../../src/engine/fleet/replica.ts";
import { FakeAdapters } from "./fake-adapters.ts";

export async function startFleet(replicas: readonly Replica[], options: Partial<FleetOptions> = {}) {
  const faults: string[] = [];
  const engine = await FleetEngine.start(replicas, {
    readAdapter: (folder) => new FakeAdapters(1).load(folder),
    queueTimeoutMs: 1000,
    prefixCaching: true,
    onFault: (error) => void faults.push(error.message),
    ...options,
  });
  return { engine, faults };
}

export async function outputsOf(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}
