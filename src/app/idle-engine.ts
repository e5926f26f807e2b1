// What a worker without engines has instead of one. It knows the model, so that jobs can be prepared, and runs nothing:
// new steps are published without being loaded, and the servers that serve them load them when they are asked for.

import type { Engine, ModelInfo } from "../engine/contract.ts";
import { StatCells } from "../engine/stats.ts";
import { NoAdapterSlot } from "../model/lora/adapter-host.ts";

export function idleEngine(info: ModelInfo): Engine {
  const nothing = new StatCells();
  return {
    info,
    generate: () => {
      throw new Error("a worker serves no requests");
    },
    loadAdapter: () => Promise.reject(new NoAdapterSlot("a worker without engines loads no adapters")),
    unloadAdapter: async () => {},
    stats: () => nothing.read(),
    healthy: () => true,
    close: async () => {},
  };
}
