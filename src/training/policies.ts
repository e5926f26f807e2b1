// Serves trained models: finds the step that a name means and loads its adapter into the engine on first use. While a
// request uses a step, the step is leased: its adapter stays loaded (engine/adapter-slots.ts) and its files stay on
// disk. Step 0 changes nothing, so the base model answers for it.

import type { SlotLease } from "../engine/adapter-slots.ts";
import { NoAdapterSlot } from "../model/lora/adapter-host.ts";
import type { ModelRecord, Owner, PolicyName, StepRecord } from "../store/tables/models.ts";
import type { BaseModel } from "./base-models.ts";
import type { TrainingContext } from "./context.ts";
import { type Access, DamagedFiles, type StepParts } from "./files/shared-files.ts";
import { TrainingError } from "./training-error.ts";

export interface PolicyLease {
  model: ModelRecord;
  step: number;
  /** Content version in the engine; null = the base model. */
  adapter: string | null;
  /** Idempotent. */
  release(): void;
}

export interface HeldStep {
  /** Its path. */
  folder: string;
  /** Idempotent. */
  release(): void;
}

/** Gives a signal that aborts when nobody waits for the policy any more. */
type Gone = () => AbortSignal;

type LoadableStep = Pick<StepRecord, "step" | "folder">;

type FoundPolicy = LoadableStep & { model: ModelRecord };

/** More steps than an engine has slots for. */
const MOST_NAMES = 10_000;

/** Step 0 is the base model, in forks too. */
const IDENTITY_STEP = 0;

/** A policy's full name, as clients of W&B's service write it. */
export function artifactName({ entity, project, name }: ModelRecord): string {
  return `wandb-artifact:///${entity}/${project}/${name}`;
}

const ARTIFACT = /^wandb-artifact:\/\/\/([^/]+)\/([^/]+)\/([^/]+?)(?::(?:step(\d{1,9})|latest))?$/;
const SHORT = /^(.+?)(?:@(\d{1,9})|:step(\d{1,9}))?$/;

export class Policies {
  readonly #context: TrainingContext;
  /** Number of users of a step's files, by stepKey. */
  readonly #leases = new Map<string, number>();
  /** How many removals of steps go on now, and how many have ended. */
  #removing = 0;
  #changes = 0;
  /** The steps that are being removed, by stepKey. */
  readonly #removals = new Map<string, Promise<boolean>>();
  /** Whose the steps are that were loaded last, and how requests name them, by their folders. */
  readonly #names = new Map<string, { owner: string; name: string }>();

  constructor(context: TrainingContext) {
    this.#context = context;
  }

  /** The owner's policy of that name and its step, or null. With `anywhere`, one of another owner if it has none. */
  async find(name: string, owner: string, anywhere = false): Promise<{ model: ModelRecord; step: number } | null> {
    return this.#find(name, owner, anywhere);
  }

  /** In one read, because every request for a policy does it. */
  async #find(name: string, owner: string, anywhere: boolean): Promise<FoundPolicy | null> {
    const { modelTable } = this.#context;
    const parsed = parsePolicyName(name);
    if (!parsed) return null;
    const own = await modelTable.policy(owner, parsed);
    const found = own ?? (anywhere ? await modelTable.policy(null, parsed) : null);
    return found && found.files !== null ? { model: found.model, ...found.files } : null;
  }

  /** Whether the options of this server allow it to serve this step (by default the newest). */
  async answers(model: ModelRecord, step?: number): Promise<boolean> {
    const base = this.#context.bases.get(model.baseModel);
    if (base === null || isServable(model, base)) return base !== null;
    return (step ?? (await this.#context.modelTable.newestStep(model.id))?.step) === IDENTITY_STEP;
  }

  /** Whether any owner has a policy, or a step of one, with this name. */
  async claims(name: string): Promise<boolean> {
    const parsed = parsePolicyName(name);
    return parsed !== null && this.#context.modelTable.hasNamed(parsed.name);
  }

  /** Makes the engine ready to answer as this policy. null when the owner has no such policy. */
  async acquire(name: string, owner: string, gone?: Gone, anywhere = false): Promise<PolicyLease | null> {
    const changes = this.#changes;
    const found = await this.#find(name, owner, anywhere);
    if (!found) return null;
    const { model, step, folder } = found;
    const base = this.#context.bases.get(model.baseModel);
    if (!base) throw new TrainingError("base_model_gone", { baseModel: model.baseModel, model: model.name });
    if (step !== IDENTITY_STEP) assertServable(model, base);
    const isStillThere = this.#removing === 0 && this.#changes === changes;
    const held = isStillThere ? { folder, release: this.#lease(model.id, step) } : await this.#tryHold(model.id, step);
    // removed meanwhile: a newer step has its name, or nothing has
    if (!held) return this.acquire(name, owner, gone, anywhere);
    try {
      const slot = step === IDENTITY_STEP ? null : await this.#slotOf(model, { step, folder: held.folder }, base, gone);
      const release = () => {
        slot?.release();
        held.release();
      };
      return { model, step, adapter: slot?.version ?? null, release };
    } catch (error) {
      held.release();
      throw error instanceof NoAdapterSlot
        ? new TrainingError("no_adapter_slot", { passing: error.passing }, error)
        : error;
    }
  }

  /** The folder of a step. Its files can be read until `release` is called. Throws if the step was removed. */
  async hold(modelId: string, step: number, parts: StepParts, access: Access): Promise<HeldStep> {
    const held = await this.#tryHold(modelId, step);
    if (!held) throw new TrainingError("unknown_step", { step });
    try {
      await this.#fetch(modelId, { step, folder: held.folder }, parts, access);
      return { folder: this.#context.workspace.stepFolder(modelId, held.folder), release: held.release };
    } catch (error) {
      held.release();
      throw error;
    }
  }

  /** null = the step was removed. */
  async #tryHold(modelId: string, step: number): Promise<{ folder: string; release: () => void } | null> {
    // without a lease, for which the step's files would stay
    if (await this.#isRemoved(modelId, step)) return null;
    const release = this.#lease(modelId, step);
    try {
      const folder = await this.#context.modelTable.folderOf(modelId, step);
      if (folder !== null) return { folder, release };
    } catch (error) {
      release();
      throw error;
    }
    release();
    return null;
  }

  /**
   * Removes the row of a step with `remove`, unless somebody here uses the step; then it stays, and this returns false.
   * Whoever asks for the step meanwhile waits, and then finds no row.
   */
  async unlessUsed(modelId: string, step: number, remove: () => Promise<boolean>): Promise<boolean> {
    if (await this.#isRemoved(modelId, step)) return true;
    if (this.inUse(modelId, step)) return false;
    const key = stepKey(modelId, step);
    const removed = this.removing(remove).finally(() => this.#removals.delete(key));
    this.#removals.set(key, removed);
    return removed;
  }

  /** Deletes rows of steps with `remove`. Whoever has looked for a step before or meanwhile looks again. */
  async removing<R>(remove: () => Promise<R>): Promise<R> {
    this.#removing++;
    try {
      return await remove();
    } finally {
      this.#removing--;
      this.#changes++;
    }
  }

  /** Waits while the step is being removed, and returns whether it was. */
  async #isRemoved(modelId: string, step: number): Promise<boolean> {
    const key = stepKey(modelId, step);
    for (let removal = this.#removals.get(key); removal; removal = this.#removals.get(key)) {
      // whoever removes it hears of a failure
      if (await removal.catch(() => false)) return true;
    }
    return false;
  }

  #lease(modelId: string, step: number): () => void {
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

  /** Whether anybody here uses the files of a step; null = of any step of the model. */
  inUse(modelId: string, step: number | null): boolean {
    if (step !== null) return this.#leases.has(stepKey(modelId, step));
    return [...this.#leases.keys()].some((key) => key.startsWith(stepKey(modelId, "")));
  }

  /** Whether the engine here has the adapter of a step. Step 0 needs none. */
  isLoaded(model: ModelRecord, { step, folder }: LoadableStep): boolean {
    const base = this.#context.bases.get(model.baseModel);
    if (base === null) return false;
    return step === IDENTITY_STEP || base.slots.keeps(this.#context.workspace.stepFolder(model.id, folder));
  }

  /** How requests name the step in a folder; null if it is not this owner's, or was not loaded here. Owner null: anybody's. */
  nameOf(folder: string, owner: Owner): string | null {
    const found = this.#names.get(folder);
    return found !== undefined && (owner === null || owner === found.owner) ? found.name : null;
  }

  #noteName({ owner, name }: ModelRecord, step: number, folder: string): void {
    this.#names.delete(folder);
    this.#names.set(folder, { owner, name: `${name}@${step}` });
    if (this.#names.size > MOST_NAMES) this.#names.delete(this.#names.keys().next().value!);
  }

  /** Loads a step before it is asked for. If that fails, the first request tries again and is told why. */
  async loadAhead(model: ModelRecord, { step, folder }: LoadableStep, base: BaseModel): Promise<void> {
    if (step === IDENTITY_STEP || !isServable(model, base)) return;
    try {
      await this.#fetch(model.id, { step, folder }, "adapter", {});
      const path = this.#context.workspace.stepFolder(model.id, folder);
      this.#noteName(model, step, path);
      await base.slots.preload(path);
    } catch (error) {
      if (error instanceof NoAdapterSlot) return;
      this.#context.log.warn("a step could not be loaded ahead of its first request", { model: model.id, step, error });
    }
  }

  /** Leases the adapter of a step whose files are held. */
  async #slotOf(model: ModelRecord, step: LoadableStep, { slots }: BaseModel, gone?: Gone): Promise<SlotLease> {
    const path = this.#context.workspace.stepFolder(model.id, step.folder);
    this.#noteName(model, step.step, path);
    // what is loaded needs no files; otherwise nobody else waits for them meanwhile
    if (!slots.keeps(path)) {
      const signal = gone?.();
      await this.#fetch(model.id, step, "adapter", signal ? { signal } : {});
    }
    return slots.lease(path);
  }

  async #fetch(modelId: string, { step, folder }: LoadableStep, parts: StepParts, access: Access): Promise<void> {
    try {
      await this.#context.workspace.fetchStep(modelId, folder, parts, access);
    } catch (error) {
      throw error instanceof DamagedFiles ? new TrainingError("damaged_step", { step }, error) : error;
    }
  }

  /** Frees the adapter slot of a step that is being removed. */
  async unload(modelId: string, folder: string, base: BaseModel | null): Promise<void> {
    await base?.slots.forget(this.#context.workspace.stepFolder(modelId, folder));
  }
}

/** A model keeps its rank, but a later start of the server may allow only lower ones. */
function isServable({ loraRank }: ModelRecord, { engine }: BaseModel): boolean {
  return loraRank <= engine.info.maxLoraRank;
}

/** Throws unless this server can serve the model's trained steps. */
export function assertServable(model: ModelRecord, base: BaseModel): void {
  if (isServable(model, base)) return;
  const limit = base.engine.info.maxLoraRank;
  throw new TrainingError("rank_too_large", { model: model.name, rank: model.loraRank, limit });
}

/** "wandb-artifact:///entity/project/name[:stepN]", "name", "name@N" or "name:stepN". */
function parsePolicyName(text: string): PolicyName | null {
  if (text.includes("\0")) return null; // no name has it, and not every database can look for it
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

function stepKey(modelId: string, step: number | ""): string {
  return `${modelId}:${step}`;
}
