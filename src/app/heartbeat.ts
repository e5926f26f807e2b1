// Says every few seconds, in the store, that this server is there, and what others may want to know of it.

import type { Log } from "../observe/log.ts";
import { SerialWork } from "../pacing/work.ts";
import type { ServerRecord, ServerTable } from "../store/tables/servers.ts";

const BEAT_MS = 5_000;

export class Heartbeat {
  readonly #table: ServerTable;
  readonly #describe: () => ServerRecord;
  readonly #log: Log;
  readonly #beats = new SerialWork();
  #timer: NodeJS.Timeout | null = null;

  constructor(table: ServerTable, describe: () => ServerRecord, log: Log) {
    this.#table = table;
    this.#describe = describe;
    this.#log = log;
  }

  /** The first beat is done when this resolves. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#beat(), BEAT_MS);
    this.#timer.unref();
    await this.#beat();
  }

  /** Takes the row away. */
  async close(): Promise<void> {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    await this.#beats.idle();
    await this.#table.remove(this.#describe().id).catch((error: unknown) => {
      this.#log.warn("this server is still listed", { error });
    });
  }

  /** One follows the other. A failure is logged; the next beat may go better. */
  #beat(): Promise<void> {
    return this.#beats
      .run(() => this.#table.beat(this.#describe()))
      .catch((error: unknown) => this.#log.warn("the store does not know that this server is there", { error }));
  }
}
