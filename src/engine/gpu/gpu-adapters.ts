// The adapters in the process, each in a slot (0 is the base model). The files are checked here, in a thread of their
// own, and read there.

import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import { type AdapterHost, type AdapterInfo, SlotTable } from "../../model/lora/adapter-host.ts";
import { readAdapter } from "../../model/lora/adapter-reader.ts";
import { locatePeft } from "../../model/lora/peft.ts";
import { SerialWork } from "../../pacing/work.ts";
import type { Frame } from "./frames.ts";

export class GpuAdapters implements AdapterHost {
  readonly maxLoras: number;
  readonly maxLoraRank: number;
  readonly #config: ModelConfig;
  readonly #send: (command: object) => void;
  /** Commands that the process has not answered. */
  readonly #calls = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  #lastCall = 0;
  readonly #table: SlotTable;
  /** Loads and unloads take turns. */
  readonly #turns = new SerialWork();

  constructor(config: ModelConfig, limits: { maxLoras: number; maxLoraRank: number }, send: (command: object) => void) {
    this.#config = config;
    this.maxLoras = limits.maxLoras;
    this.maxLoraRank = limits.maxLoraRank;
    this.#send = send;
    this.#table = new SlotTable(limits.maxLoras, limits.maxLoraRank);
  }

  load(folder: string): Promise<AdapterInfo & { slot: number }> {
    return this.#turns.run(async () => {
      // before its content is checked: the process sees when it changes after this
      const places = locatePeft(folder, this.#config);
      const { version, rank } = await readAdapter(folder, this.#config);
      const known = this.slotOf(version);
      if (known !== null) return { version, rank, slot: known };
      const slot = this.#table.freeFor(rank);
      await this.#call({ type: "load", slot, version, rank, ...places });
      this.#table.set(slot, version);
      return { version, rank, slot };
    });
  }

  unload(version: string): Promise<void> {
    return this.#turns.run(async () => {
      const slot = this.slotOf(version);
      if (slot === null) return;
      this.#table.set(slot, null);
      await this.#call({ type: "unload", slot });
    });
  }

  slotOf(version: string): number | null {
    return this.#table.slotOf(version);
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
}
