// The adapters of a fleet. What adapter-slots.ts has loaded is wanted on every replica: one must have it before a load
// counts as done, the others follow in the background. A replica that restarted or was unreachable gets what it lacks and
// gives up what nobody wants any more.

import { EngineUnavailable } from "../../errors/faults.ts";
import { type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import type { Member } from "./member.ts";

/** Loads that run on one replica at the same time. They take its time from requests. */
const LOADS_AT_ONCE = 2;

export interface AdapterFleetOptions {
  /** Computes version and rank from the files. Rejects with a message for the user. */
  readAdapter: (folder: string) => Promise<AdapterInfo>;
  /** The least of all replicas. */
  limits: () => { maxLoras: number; maxLoraRank: number };
  /** How long a load waits while no replica is ready. */
  timeoutMs: number;
  /** Called when a background load fails. */
  onFault: (error: Error) => void;
}

interface Load {
  done: Promise<void>;
  loaded: boolean;
}

/** The loads of one replica. */
interface Shelf {
  /** By version: loaded or being loaded. */
  loads: Map<string, Load>;
  /** Loads that run, and those that wait for their turn. */
  running: number;
  turns: (() => void)[];
}

export class AdapterFleet {
  readonly #options: AdapterFleetOptions;
  /** Version -> a folder with its content. */
  readonly #wanted = new Map<string, string>();
  readonly #shelves: ReadonlyMap<Member, Shelf>;
  /** Wake the loads that wait for a replica. */
  readonly #onReady = new Set<() => void>();

  constructor(members: readonly Member[], options: AdapterFleetOptions) {
    this.#options = options;
    this.#shelves = new Map(members.map((member) => [member, { loads: new Map(), running: 0, turns: [] }]));
  }

  isLoaded(member: Member, version: string): boolean {
    return this.#shelves.get(member)!.loads.get(version)?.loaded ?? false;
  }

  /** Resolves when one replica has it. Rejects when none can take it. */
  async load(folder: string): Promise<AdapterInfo> {
    const adapter = await this.#options.readAdapter(folder);
    const { version, rank } = adapter;
    const { maxLoras, maxLoraRank } = this.#options.limits();
    if (rank > maxLoraRank) {
      throw new AdapterTooLarge(`the adapter has rank ${rank}, more than --max-lora-rank ${maxLoraRank}`);
    }
    const isNew = !this.#wanted.has(version);
    if (isNew && this.#wanted.size >= maxLoras) {
      throw new NoAdapterSlot(`all ${maxLoras} adapter slots are in use; raise --max-loras or unload one`);
    }
    await this.#someoneReady();
    this.#wanted.set(version, folder);
    const ready = this.#ready();
    try {
      await Promise.any(ready.map((member) => this.ensure(member, version)));
    } catch (errors) {
      if (isNew) this.#wanted.delete(version);
      const [first] = (errors as AggregateError).errors as Error[];
      throw this.#ready().length > 0 ? first : new EngineUnavailable("no replica is ready", { cause: first });
    }
    for (const member of ready) this.#inBackground(member, version);
    return adapter;
  }

  async unload(version: string): Promise<void> {
    this.#wanted.delete(version);
    await Promise.all(this.#ready().map((member) => this.#drop(member, version)));
  }

  /** Loads a wanted adapter unless it is there. Several callers share one load. */
  ensure(member: Member, version: string): Promise<void> {
    const shelf = this.#shelves.get(member)!;
    const known = shelf.loads.get(version);
    if (known !== undefined) return known.done;
    const load: Load = { done: this.#load(member, shelf, version), loaded: false };
    shelf.loads.set(version, load);
    load.done.then(
      () => {
        load.loaded = true;
      },
      () => {
        if (shelf.loads.get(version) === load) shelf.loads.delete(version);
      },
    );
    return load.done;
  }

  /** The replica says that it does not have the adapter. */
  missing(member: Member, version: string): void {
    const { loads } = this.#shelves.get(member)!;
    if (loads.get(version)?.loaded) loads.delete(version); // if not, it is being loaded again already
  }

  /** To be called when the replica may have become ready. `restarted`: it has no adapters. */
  async catchUp(member: Member, restarted: boolean): Promise<void> {
    const { loads } = this.#shelves.get(member)!;
    if (restarted) loads.clear();
    if (member.replica.state !== "ready") return;
    for (const wake of this.#onReady) wake();
    // First what nobody wants, because it may take a slot that another adapter needs.
    await Promise.all(
      [...loads.keys()].filter((version) => !this.#wanted.has(version)).map((v) => this.#drop(member, v)),
    );
    for (const version of this.#wanted.keys()) this.#inBackground(member, version);
  }

  #ready(): Member[] {
    return [...this.#shelves.keys()].filter(({ replica }) => replica.state === "ready");
  }

  /** Throws EngineUnavailable when that takes too long. */
  async #someoneReady(): Promise<void> {
    if (this.#ready().length > 0) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#onReady.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, this.#options.timeoutMs);
      this.#onReady.add(wake);
    });
    if (this.#ready().length === 0) throw new EngineUnavailable("no replica is ready");
  }

  #inBackground(member: Member, version: string): void {
    this.ensure(member, version).catch((error: Error) => {
      const text = `${member.replica.name} could not load adapter ${version}: ${error.message}`;
      this.#options.onFault(new Error(text, { cause: error }));
    });
  }

  async #load(member: Member, shelf: Shelf, version: string): Promise<void> {
    if (shelf.running >= LOADS_AT_ONCE) await new Promise<void>((resolve) => shelf.turns.push(resolve));
    else shelf.running++;
    try {
      const folder = this.#wanted.get(version);
      if (folder === undefined) throw new Error("it was unloaded meanwhile");
      await member.replica.loadAdapter(version, folder);
    } finally {
      const next = shelf.turns.shift();
      if (next === undefined) shelf.running--;
      else next();
    }
  }

  async #drop(member: Member, version: string): Promise<void> {
    const { loads } = this.#shelves.get(member)!;
    const load = loads.get(version);
    if (load === undefined) return;
    await load.done.catch(() => {});
    if (this.#wanted.has(version) || loads.get(version) !== load) return;
    loads.delete(version);
    await member.replica.unloadAdapter(version).catch(() => {}); // a hint; a replica that went away forgets anyway
  }
}
