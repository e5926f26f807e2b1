// Adapters that operators load, replace in place and unload by name. Runs one operation at a time, so two clients that
// replace the same name cannot leave an unused adapter behind. engine/adapter-slots.ts keeps the slots.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { AdapterSlots } from "../../engine/adapter-slots.ts";
import { EngineUnavailable } from "../../errors/faults.ts";
import { ServiceError, toServiceError } from "../../errors/service-error.ts";
import { type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import { SerialWork } from "../../pacing/work.ts";
import type { LoadedAdapter, ModelRegistry } from "./model-registry.ts";

interface LoadAdapter {
  name: string;
  /** Folder on this machine. */
  path: string;
  /** Whether an adapter of the same name may be replaced. */
  inPlace: boolean;
}

export class AdapterManager {
  readonly #slots: AdapterSlots;
  readonly #models: ModelRegistry;
  readonly #turns = new SerialWork();

  constructor(slots: AdapterSlots, models: ModelRegistry) {
    this.#slots = slots;
    this.#models = models;
  }

  load(adapter: LoadAdapter): Promise<AdapterInfo> {
    return this.#turns.run(() => this.#load(adapter));
  }

  unload(name: string): Promise<void> {
    return this.#turns.run(() => this.#unload(name));
  }

  async #load({ name, path, inPlace }: LoadAdapter): Promise<AdapterInfo> {
    if (name === "" || path === "") {
      throw new ServiceError("invalid_adapter_request", "Both lora_name and lora_path must be given.");
    }
    const before = this.#models.adapter(name);
    if (before === undefined && (await this.#models.isTaken(name))) {
      const message = `The name '${name}' is that of the served model or of a policy; choose another one.`;
      throw new ServiceError("invalid_adapter_request", message, { param: "lora_name" });
    }
    if (before !== undefined && !inPlace) {
      const message = `The adapter '${name}' has already been loaded; use load_inplace to replace it.`;
      throw new ServiceError("invalid_adapter_request", message);
    }
    const config = await stat(join(path, "adapter_config.json")).catch(() => null);
    if (config === null || !config.isFile()) {
      throw new ServiceError("not_found", "There is no adapter_config.json at lora_path.", { param: "lora_path" });
    }
    let info: AdapterInfo;
    try {
      info = await this.#slots.hold(path);
    } catch (error) {
      if (error instanceof NoAdapterSlot && before !== undefined && this.#slots.isHeldOnce(before.version)) {
        return this.#models.replacing(name, () => this.#replace(before, path));
      }
      throw refusal(error);
    }
    this.#serve(name, path, info);
    if (before !== undefined) await this.#slots.drop(before.version);
    return info;
  }

  /** Replaces an adapter when there is no slot for both at the same time. */
  async #replace({ name, version }: LoadedAdapter, path: string): Promise<AdapterInfo> {
    try {
      const info = await this.#slots.replace(version, path);
      this.#serve(name, path, info);
      return info;
    } catch (error) {
      // Happens only if the folder changed after it was found to be sound, a moment ago.
      if (!this.#slots.isHeldOnce(version)) this.#models.removeAdapter(name);
      throw refusal(error);
    }
  }

  #serve(name: string, path: string, { version }: AdapterInfo): void {
    this.#models.setAdapter({ name, path, version, lease: () => this.#slots.leaseHeld(version) });
  }

  async #unload(name: string): Promise<void> {
    if (name === "") throw new ServiceError("invalid_adapter_request", "lora_name must be given.");
    const adapter = this.#models.adapter(name);
    if (adapter === undefined) {
      throw new ServiceError("model_not_found", `The LoRA adapter '${name}' does not exist.`, { param: "lora_name" });
    }
    this.#models.removeAdapter(name);
    await this.#slots.drop(adapter.version);
  }
}

function refusal(error: unknown): ServiceError {
  if (error instanceof EngineUnavailable) return toServiceError(error);
  if (error instanceof NoAdapterSlot && error.passing) {
    const message = "Every adapter slot is in use, some by running requests.";
    return new ServiceError("no_adapter_slot", message, { cause: error });
  }
  const code =
    error instanceof NoAdapterSlot || error instanceof AdapterTooLarge ? "invalid_adapter_request" : "broken_adapter";
  const message = `The adapter cannot be used: ${(error as Error).message}`;
  return new ServiceError(code, message, { param: "lora_path", cause: error });
}
