// A proxy in front of PostgreSQL that cuts connections around COMMIT, when a client cannot know the outcome.

import { FaultProxy, type Observer, type Passage } from "../support/fault-proxy.ts";

/** "before": COMMIT does not reach the server. "after": the server commits, and its answer does not reach the client. */
export type CommitFault = "before" | "after";

export interface PostgresProxy {
  /** The URL of the same database, by way of the proxy. */
  url: string;
  /** Each entry cuts the connection of one COMMIT, the first entry first. */
  commitFaults: CommitFault[];
  /** Each entry cuts the connection of one UPDATE outside a transaction that has this text, after the server made it. */
  lostUpdates: string[];
  /** How often clients have waited for the server: each time for one statement, or for several that were sent as one. */
  roundTrips: number;
  /** Refuses and delays connections, and cuts all of them. */
  faults: FaultProxy;
}

/** `url`: of a database on a server with a Unix socket or a port, without TLS. */
export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
  const own = new URL(url);
  const socketDir = own.searchParams.get("host");
  const port = Number(own.port || 5432);
  const target = socketDir === null ? { host: own.hostname, port } : { path: `${socketDir}/.s.PGSQL.${port}` };
  const seen: Seen = { commitFaults: [], lostUpdates: [], roundTrips: 0 };
  const faults = await FaultProxy.start(target, () => new StatementObserver(seen));
  own.searchParams.delete("host");
  own.host = `127.0.0.1:${faults.port}`;
  return Object.assign(seen, { url: own.href, faults });
}

type Seen = Pick<PostgresProxy, "commitFaults" | "lostUpdates" | "roundTrips">;

/** Follows the messages of one connection. */
class StatementObserver implements Observer {
  readonly #seen: Seen;
  /** The first message, unlike the others, has no letter in front of its length. */
  #greeted = false;
  /** The beginning of a message whose end has not come yet. */
  #rest = Buffer.alloc(0);
  /** Texts of prepared statements by name. */
  readonly #prepared = new Map<string, string>();
  /** COMMIT is on its way, and its answer must not arrive. */
  #silenced = false;
  /** So is an UPDATE, if it changes anything. */
  #updateSilenced = false;

  constructor(seen: Seen) {
    this.#seen = seen;
  }

  toServer(chunk: Buffer): Passage {
    const bytes = Buffer.concat([this.#rest, chunk]);
    let end = 0;
    for (;;) {
      const start = end;
      const lengthAt = this.#greeted ? start + 1 : start;
      if (lengthAt + 4 > bytes.length) break;
      end = lengthAt + bytes.readUInt32BE(lengthAt);
      if (end > bytes.length) {
        end = start;
        break;
      }
      const message = bytes.subarray(start, end);
      if (this.#greeted && endsRoundTrip(message)) this.#seen.roundTrips += 1;
      if (this.#greeted && isCommit(message)) {
        const fault = this.#seen.commitFaults.shift();
        if (fault === "before") return { bytes: bytes.subarray(0, start), cut: true };
        this.#silenced = fault === "after";
      }
      const [lost] = this.#seen.lostUpdates;
      const text = this.#greeted ? this.#textOf(message) : "";
      if (lost !== undefined && text.includes(lost)) this.#updateSilenced = true;
      this.#greeted = true;
    }
    this.#rest = Buffer.from(bytes.subarray(end));
    return { bytes: bytes.subarray(0, end), cut: false };
  }

  /** The statement that a message runs, or prepares to run at once. */
  #textOf(message: Buffer): string {
    const [first, second] = message.toString("latin1", 5).split("\0") as [string, string];
    switch (message.toString("latin1", 0, 1)) {
      case "Q":
        return first;
      case "P": // prepares it: its name, then the text
        this.#prepared.set(first, second);
        return second;
      case "B": // runs it: a name of its result, then that of the statement
        return this.#prepared.get(second) ?? "";
      default:
        return "";
    }
  }

  toClient(bytes: Buffer): Passage {
    if (this.#updateSilenced && /UPDATE [1-9]\d*\0/.test(bytes.toString("latin1"))) {
      this.#seen.lostUpdates.shift();
      return { bytes: Buffer.alloc(0), cut: true };
    }
    if (!this.#silenced) return { bytes, cut: false };
    this.#silenced = false;
    if (bytes.includes("COMMIT\0")) return { bytes: Buffer.alloc(0), cut: true };
    // The server refused to commit. The next COMMIT is cut instead.
    this.#seen.commitFaults.unshift("after");
    return { bytes, cut: false };
  }
}

/** A simple query, or the Sync after the messages of a prepared one. */
function endsRoundTrip(message: Buffer): boolean {
  return /^[QS]/.test(message.toString("latin1", 0, 1));
}

/** A simple query, or one that is prepared: both carry the text. */
function isCommit(message: Buffer): boolean {
  return /^[QP]/.test(message.toString("latin1", 0, 1)) && /\bCOMMIT\b/i.test(message.toString("latin1", 5, 40));
}
