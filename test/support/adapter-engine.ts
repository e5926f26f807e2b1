// An engine that only holds adapters. It checks and records what training loads into it.

import type { Engine } from "../../src/engine/contract.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { NoAdapterSlot } from "../../src/model/lora/adapter-host.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";

export interface AdapterEngine extends Engine {
  /** Content versions that are loaded now. */
  readonly versions: Set<string>;
  readonly loads: string[];
}

/** `checkpoint`: folder of the base model that adapters must fit. */
export function adapterEngine(checkpoint: string, maxLoras = 4, maxLoraRank = 16): AdapterEngine {
  const config = readModelConfig(checkpoint);
  const versions = new Set<string>();
  const loads: string[] = [];
  return {
    info: {
      vocabSize: 256,
      maxModelLen: 512,
      positionsPerBlock: 16,
      cacheTokens: 512,
      linkSize: 16,
      policy: "fcfs",
      maxLoras,
      maxLoraRank,
    },
    versions,
    loads,
    async loadAdapter(folder) {
      const { version, rank } = loadPeft(folder, config);
      if (rank > maxLoraRank) throw new Error("the adapter's rank is too large");
      if (versions.size >= maxLoras && !versions.has(version)) throw new NoAdapterSlot("no adapter slot is free");
      versions.add(version);
      loads.push(folder);
      return { version, rank };
    },
    async unloadAdapter(version) {
      versions.delete(version);
    },
    generate() {
      throw new Error("this engine generates nothing");
    },
    stats() {
      throw new Error("this engine counts nothing");
    },
    healthy: () => true,
    close: async () => {},
  };
}
