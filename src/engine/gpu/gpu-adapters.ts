// The adapters in the process, each in a slot (0 is the base model). The files are checked here, in a thread of their
// own, and read there.

import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import { type AdapterHost, type AdapterInfo, AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import { readAdapter } from "../../model/lora/adapter-reader.ts";
import { locatePeft } from "../../model/lora/peft.ts";
import type { Frame } from "./frames.ts";

export class GpuAdapters implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  readonly #config: ModelConfig;
  readonly #send: (command: object) => void;
  /** Commands that the process has not answered. */
  readonly #calls = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  #lastCall = 0;
  /** Versions; index i holds slot i + 1. */
  readonly #slots: (string | null)[];
  /** Loads and unloads take turns. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(config: ModelConfig, limits: { maxLoras: number; maxLoraRank: number }, send: (command: object) => void) {
    this.#config = config;
    this.maxLoras = limits.maxLoras;
    this.maxLoraRank = limits.maxLoraRank;
    this.#send = send;
    this.#slots = new Array<string | null>(limits.maxLoras).fill(null);
  }

  load(folder: string): Promise<AdapterInfo & { slot: number }> {
    return this.#inTurn(async () => {
      // before its content is checked: the process sees when it changes after this
      const places = locatePeft(folder, this.#config);
      const { version, rank } = await readAdapter(folder, this.#config);
      const known = this.slotOf(version);
      if (known !== null) return { version, rank, slot: known };
      if (rank > this.maxLoraRank) {
        throw new AdapterTooLarge(`the adapter has rank ${rank}, more than --max-lora-rank ${this.maxLoraRank}`);
      }
      const free = this.#slots.indexOf(null);
      if (free === -1) {
        throw new NoAdapterSlot(`all ${this.maxLoras} adapter slots are in use; raise --max-loras or unload one`);
      }
      const slot = free + 1;
      await this.#call({ type: "load", slot, version, rank, ...places });
      this.#slots[free] = version;
      return { version, rank, slot };
    });
  }

  unload(version: string): Promise<void> {
    return this.#inTurn(async () => {
      const slot = this.slotOf(version);
      if (slot === null) return;
      this.#slots[slot - 1] = null;
      await this.#call({ type: "unload", slot });
    });
  }

  slotOf(version: string): number | null {
    const at = this.#slots.indexOf(version);
    return at === -1 ? null : at + 1;
  }

  /** A frame `done` or `failed`. */
  receive(frame: Frame): void {
    const number = frame.number("call");
    const call = this.#calls.get(number);
    if (call === undefined) throw frame.problem("answers no call");
    this.#calls.delete(number);
    if (frame.type === "done") call.resolve();
    else call.reject(new Error(frame.text("message")));
  }

  #call(command: object): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = ++this.#lastCall;
      this.#calls.set(call, { resolve, reject });
      this.#send({ ...command, call });
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
