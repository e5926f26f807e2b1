// The adapters that `--lora-modules` names: read, checked and loaded at start.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Service } from "../api/service.ts";
import { OperatorError } from "../errors/faults.ts";

interface LoraModule {
  name: string;
  /** PEFT folder. */
  path: string;
}

/** Finds mistakes before minutes of reading weights. */
export function checkLoraModules(modules: readonly LoraModule[]): void {
  for (const [i, { name, path }] of modules.entries()) {
    if (modules.findIndex((other) => other.name === name) < i) {
      throw new OperatorError(`--lora-modules has the name ${name} twice`);
    }
    if (!existsSync(join(path, "adapter_config.json"))) {
      throw new OperatorError(`--lora-modules ${name}: there is no adapter_config.json in ${path}`);
    }
  }
}

export async function loadLoraModules(service: Service, modules: readonly LoraModule[]): Promise<void> {
  for (const { name, path } of modules) {
    try {
      await service.adapters.load({ name, path, inPlace: false });
    } catch (error) {
      throw new OperatorError(`--lora-modules ${name}: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** Reads NAME=PATH, or a JSON object with name and path. */
export function readLoraModule(text: string): LoraModule {
  if (text.trim().startsWith("{")) {
    try {
      const { name, path } = JSON.parse(text) as { name?: unknown; path?: unknown };
      if (typeof name === "string" && typeof path === "string" && name !== "" && path !== "") return { name, path };
    } catch (error) {
      throw new OperatorError(`--lora-modules: ${(error as Error).message}`, { cause: error });
    }
  } else {
    const split = text.indexOf("=");
    if (split > 0 && split < text.length - 1) return { name: text.slice(0, split), path: text.slice(split + 1) };
  }
  throw new OperatorError(`--lora-modules expects NAME=PATH or {"name":…,"path":…}, not ${text}`);
}
