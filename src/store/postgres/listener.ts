// Hints from other servers: LISTEN on a connection of its own. Whenever hints may have been lost, every listener hears
// "" and looks for itself: after each connect, and again and again while there is no connection.
import pg from "pg";
import { SerialWork } from "../../pacing/work.ts";
import { clientConfig } from "./connections.ts";

const POLL_MS = 2_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** How often a silent connection is tried. */
const PROBE_MS = 15_000;

type Heard = (payload: string) => void;

/** The name that a channel has in the database. Names have at most 63 bytes there. */
export function channelName(channel: string): string {
  if (!/^[a-z][a-z0-9_]{0,50}$/.test(channel)) throw new Error(`a channel is a lower-case word, not ${channel}`);
  return `flywheel_${channel}`;
}

export class PostgresListener {
  readonly #config: pg.ClientConfig;
  readonly #channels = new Map<string, Set<Heard>>();
  /** The connection that listens; null = there is none. */
  #client: pg.Client | null = null;
  /** Statements on it follow one another. */
  readonly #statements = new SerialWork();
  #listening: Promise<void> | null = null;
  #closed = false;
  /** Ends the connection, or the pause before the next one. */
  #end = () => {};

  constructor(url: string) {
    this.#config = clientConfig(url);
  }

  add(channel: string, heard: Heard): () => void {
    const name = channelName(channel);
    const listeners = this.#channels.get(name);
    if (listeners) listeners.add(heard);
    else {
      this.#channels.set(name, new Set([heard]));
      if (this.#client) void this.#subscribe(this.#client, name);
    }
    if (!this.#closed) this.#listening ??= this.#keepListening();
    return () => void this.#channels.get(name)?.delete(heard);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#channels.clear();
    this.#end();
    await this.#listening;
  }

  async #keepListening(): Promise<void> {
    const poll = setInterval(() => {
      if (this.#client === null) this.#lookAgain();
    }, POLL_MS);
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#closed) {
      const heard = await this.#listen();
      pauseMs = heard ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
      if (!this.#closed) await this.#pause(pauseMs);
    }
    clearInterval(poll);
  }

  /** Listens until the connection ends. Returns whether there was one. */
  async #listen(): Promise<boolean> {
    const client = new pg.Client(this.#config);
    const ended = new Promise<void>((resolve) => {
      client.on("error", () => resolve());
      client.on("end", resolve);
      this.#end = resolve;
    });
    client.on("notification", ({ channel, payload = "" }) => this.#tell(channel, payload));
    try {
      await client.connect();
      this.#client = client;
      for (const name of this.#channels.keys()) await this.#query(client, `LISTEN ${name}`);
      this.#lookAgain();
    } catch {
      // The poll goes on. Calls of the store report what is wrong with the database.
      this.#client = null;
      await client.end().catch(() => {});
      return false;
    }
    const probe = setInterval(() => void this.#query(client, "SELECT 1").catch(() => this.#end()), PROBE_MS);
    await ended;
    clearInterval(probe);
    this.#client = null;
    await client.end().catch(() => {});
    return true;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#end = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** A channel that came while the connection was there. Hints from before are lost. */
  async #subscribe(client: pg.Client, name: string): Promise<void> {
    try {
      await this.#query(client, `LISTEN ${name}`);
      this.#tell(name, "");
    } catch {
      // the connection is gone; the next one has this channel too
      this.#end();
    }
  }

  #query(client: pg.Client, sql: string): Promise<unknown> {
    return this.#statements.run(() => client.query(sql));
  }

  #lookAgain(): void {
    for (const name of this.#channels.keys()) this.#tell(name, "");
  }

  #tell(name: string, payload: string): void {
    for (const heard of this.#channels.get(name) ?? []) heard(payload);
  }
}
