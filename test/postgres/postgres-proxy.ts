// A proxy in front of PostgreSQL that cuts connections around COMMIT, when a client cannot know the outcome.

import { FaultProxy, type Observer, type Passage } from "../fakes/fault-proxy.ts";

/** "before": COMMIT does not reach the server. "after": the server commits, and its answer does not reach the client. */
export type CommitFault = "before" | "after";

export interface PostgresProxy {
  /** The URL of the same database, by way of the proxy. */
  url: string;
  /** Each entry cuts the connection of one COMMIT, the first entry first. */
  commitFaults: CommitFault[];
  /** Refuses and delays connections, and cuts all of them. */
  faults: FaultProxy;
}

/** `url`: of a database on a server with a Unix socket or a port, without TLS. */
export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
  const own = new URL(url);
  const socketDir = own.searchParams.get("host");
  const port = Number(own.port || 5432);
  const target = socketDir === null ? { host: own.hostname, port } : { path: `${socketDir}/.s.PGSQL.${port}` };
  const commitFaults: CommitFault[] = [];
  const faults = await FaultProxy.start(target, () => new CommitObserver(commitFaults));
  own.searchParams.delete("host");
  own.host = `127.0.0.1:${faults.port}`;
  return { url: own.href, commitFaults, faults };
}

/** Follows the messages of one connection. */
class CommitObserver implements Observer {
  readonly #faults: CommitFault[];
  /** The first message, unlike the others, has no letter in front of its length. */
  #greeted = false;
  /** The beginning of a message whose end has not come yet. */
  #rest = Buffer.alloc(0);
  /** COMMIT is on its way, and its answer must not arrive. */
  #silenced = false;

  constructor(faults: CommitFault[]) {
    this.#faults = faults;
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
      if (this.#greeted && isCommit(bytes.subarray(start, end))) {
        const fault = this.#faults.shift();
        if (fault === "before") return { bytes: bytes.subarray(0, start), cut: true };
        this.#silenced = fault === "after";
      }
      this.#greeted = true;
    }
    this.#rest = Buffer.from(bytes.subarray(end));
    return { bytes: bytes.subarray(0, end), cut: false };
  }

  toClient(bytes: Buffer): Passage {
    if (!this.#silenced) return { bytes, cut: false };
    this.#silenced = false;
    if (bytes.includes("COMMIT\0")) return { bytes: Buffer.alloc(0), cut: true };
    // The server refused to commit. The next COMMIT is cut instead.
    this.#faults.unshift("after");
    return { bytes, cut: false };
  }
}

/** A simple query, or one that is prepared: both carry the text. */
function isCommit(message: Buffer): boolean {
  return /^[QP]/.test(message.toString("latin1", 0, 1)) && /\bCOMMIT\b/i.test(message.toString("latin1", 5, 40));
}
