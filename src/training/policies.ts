// Serving what was trained: from a name to the adapter of a step in the engine. Adapters are loaded when first asked for
// and the least recently used one makes room when all slots are taken. A step that a request uses is leased and is
// neither unloaded nor pruned. Step 0 of a new model is the identity: the base model itself answers for it.

import { ServiceError } from "../errors.ts";
import type { ModelRecord, ModelTable } from "../store/model-table.ts";
import type { BaseModel, BaseModels } from "./base-models.ts";
import type { Workspace } from "./workspace.ts";

export interface PolicyLease {
  model: ModelRecord;
  step: number;
  base: BaseModel;
  /** Content version in the engine; null = the base model. */
  adapter: string | null;
  /** Idempotent. */
  release(): void;
}

/** An adapter in the engine, or on its way there (`version` null). */
interface Slot {
  version: string | null;
  lastUse: number;
  loading: Promise<string>;
}

/** The parts of a policy's name. `step` null = the newest. */
interface PolicyName {
  entity: string | null;
  project: string | null;
  name: string;
  step: number | null;
}

/** Step 0 never changed the model, in forks too. */
const IDENTITY_STEP = 0;

const RETRY_AFTER_S = 1;

const ARTIFACT = /^wandb-artifact:\/\/\/([^/]+)\/([^/]+)\/([^/]+?)(?::(?:step(\d{1,9})|latest))?$/;
const SHORT = /^(.+?)(?:@(\d{1,9})|:step(\d{1,9}))?$/;

export class Policies {
  readonly #models: ModelTable;
  readonly #bases: BaseModels;
  readonly #workspace: Workspace;
  /** By stepKey. */
  readonly #slots = new Map<string, Slot>();
  readonly #leases = new Map<string, number>();
  /** Whether somebody else serves this content too: then it stays in the engine. */
  usedElsewhere: (version: string) => boolean = () => false;
  #lastLoad: Promise<unknown> = Promise.resolve();
  #clock = 0;

  constructor(models: ModelTable, bases: BaseModels, workspace: Workspace) {
    this.#models = models;
    this.#bases = bases;
    this.#workspace = workspace;
  }

  /** The owner's policy of that name and its step; null when there is none. */
  find(name: string, owner: string): { model: ModelRecord; step: number; newest: boolean } | null {
    const parsed = parsePolicyName(name);
    const model = parsed && this.#modelOf(parsed, owner);
    const newest = model && this.#models.newestStep(model.id);
    if (!parsed || !model || !newest) return null;
    const step = parsed.step ?? newest.step;
    if (step !== newest.step && !this.#models.step(model.id, step)) return null;
    return { model, step, newest: step === newest.step };
  }

  /** Makes the engine ready to answer as this policy. null when the name is not one of the owner's. */
  async acquire(name: string, owner: string): Promise<PolicyLease | null> {
    const found = this.find(name, owner);
    if (!found) return null;
    const { model, step } = found;
    const base = this.#bases.get(model.baseModel);
    if (!base) throw new Error(`the base model ${model.baseModel} of ${model.name} is not served any more`);
    const release = this.lease(model.id, step);
    try {
      const adapter = await this.load(model, step, base);
      return { model, step, base, adapter, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Marks a step as used until the returned function is called. */
  lease(modelId: string, step: number): () => void {
    const key = stepKey(modelId, step);
    this.#leases.set(key, (this.#leases.get(key) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = this.#leases.get(key)! - 1;
      if (left === 0) this.#leases.delete(key);
      else this.#leases.set(key, left);
    };
  }

  inUse(modelId: string, step: number): boolean {
    return this.#leases.has(stepKey(modelId, step));
  }

  /** Whether a step with this content is in the engine. */
  holds(version: string): boolean {
    return [...this.#slots.values()].some((slot) => slot.version === version);
  }

  /** Loads the step if a slot is free for it; otherwise the first request that wants it will. */
  async tryLoad(model: ModelRecord, step: number, base: BaseModel): Promise<void> {
    try {
      await this.load(model, step, base);
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === "no_adapter_slot")) throw error;
    }
  }

  /** Loads the step into the engine; its content version there, or null when the base model is the same thing. */
  async load(model: ModelRecord, step: number, base: BaseModel): Promise<string | null> {
    if (step === IDENTITY_STEP) return null;
    const key = stepKey(model.id, step);
    let slot = this.#slots.get(key);
    if (!slot) {
      slot = {
        version: null,
        lastUse: 0,
        loading: this.#loadNow(key, this.#workspace.stepFolder(model.id, step), base),
      };
      this.#slots.set(key, slot);
    }
    const version = await slot.loading;
    slot.lastUse = ++this.#clock;
    return version;
  }

  /** Frees the engine's slot of a step that is going away. */
  async unload(modelId: string, step: number, base: BaseModel | null): Promise<void> {
    const slot = this.#slots.get(stepKey(modelId, step));
    await slot?.loading.catch(() => {});
    await this.#free(stepKey(modelId, step), base);
  }

  /** One after the other: each must see how much room the one before left. */
  #loadNow(key: string, folder: string, base: BaseModel): Promise<string> {
    const load = this.#lastLoad.then(async () => {
      try {
        await this.#makeRoom(base);
        const { version } = await base.engine.loadAdapter(folder);
        const slot = this.#slots.get(key);
        if (slot) slot.version = version;
        return version;
      } catch (error) {
        this.#slots.delete(key);
        throw error;
      }
    });
    this.#lastLoad = load.catch(() => {});
    return load;
  }

  async #makeRoom(base: BaseModel): Promise<void> {
    while (true) {
      const loaded = [...this.#slots].filter(([, slot]) => slot.version !== null);
      const versions = new Set(loaded.map(([, slot]) => slot.version));
      if (versions.size < base.engine.info.maxLoras) return;
      const unused = loaded.filter(([key]) => !this.#leases.has(key)).sort(([, a], [, b]) => a.lastUse - b.lastUse);
      if (!unused[0]) {
        const message = "Every adapter slot is in use by running requests.";
        throw new ServiceError("no_adapter_slot", message, { retryAfter: RETRY_AFTER_S });
      }
      await this.#free(unused[0][0], base);
    }
  }

  async #free(key: string, base: BaseModel | null): Promise<void> {
    const version = this.#slots.get(key)?.version;
    this.#slots.delete(key);
    if (version === undefined || version === null) return;
    // a rollback has the same content as the step it came from
    if (!this.holds(version) && !this.usedElsewhere(version)) await base?.engine.unloadAdapter(version);
  }

  #modelOf({ entity, project, name }: PolicyName, owner: string): ModelRecord | null {
    if (entity !== null && project !== null) return this.#models.named(owner, entity, project, name);
    return this.#models.newestNamed(owner, name);
  }
}

/** "wandb-artifact:///entity/project/name[:stepN]", "name", "name@N" or "name:stepN". */
export function parsePolicyName(text: string): PolicyName | null {
  const artifact = ARTIFACT.exec(text);
  if (artifact) {
    const [, entity, project, name, step] = artifact;
    return { entity: entity!, project: project!, name: name!, step: step === undefined ? null : Number(step) };
  }
  const short = SHORT.exec(text);
  if (!short || text.includes("://")) return null;
  const step = short[2] ?? short[3];
  return { entity: null, project: null, name: short[1]!, step: step === undefined ? null : Number(step) };
}

function stepKey(modelId: string, step: number): string {
  return `${modelId}:${step}`;
}
