// The calls to disk, database and engine that an operation makes, and which of them fails. One run of an operation lets one call
// fail in one way; the runs go through all calls and all ways.

import { CommitUnknown, EngineUnavailable, StoreUnreachable } from "../../src/errors/faults.ts";

export type Device = "disk" | "database" | "engine";

export interface Call {
  device: Device;
  /** The function, or the beginning of a statement. */
  name: string;
  /** "change": has an effect. "removal": one that frees space. "commit": makes a whole transaction take effect. */
  kind: "read" | "change" | "removal" | "commit";
  /** Inside a transaction, an answer that is lost undoes everything. */
  inTransaction?: boolean;
}

/** A way to fail. */
export interface Way {
  name: string;
  /** Whether the call takes effect before it fails. */
  afterwards: boolean;
  /** null = a call of this kind does not fail in this way. */
  error(call: Call): Error | null;
}

const withCode = (code: string, message: string) => Object.assign(new Error(`${code}: ${message}`), { code });

export const WAYS: readonly Way[] = [
  {
    name: "broken",
    afterwards: false,
    error: ({ device }) =>
      device === "disk"
        ? withCode("EIO", "i/o error")
        : device === "database"
          ? withCode("SQLITE_IOERR", "disk I/O error")
          : new Error("the engine thread ended"),
  },
  {
    name: "full",
    afterwards: false,
    error: ({ device, kind }) =>
      kind === "read" || device === "engine" || (device === "disk" && kind === "removal")
        ? null
        : device === "disk"
          ? withCode("ENOSPC", "no space left on device")
          : withCode("SQLITE_FULL", "database or disk is full"),
  },
  {
    name: "away",
    afterwards: false,
    // what is lost in a commit is not known to be undone
    error: ({ device, kind }) =>
      device === "disk" || kind === "commit"
        ? null
        : device === "database"
          ? new StoreUnreachable("the database cannot be reached")
          : new EngineUnavailable("no replica is ready"),
  },
  {
    name: "lost answer",
    afterwards: true,
    error: ({ device, kind, inTransaction = false }) =>
      kind === "read" || inTransaction
        ? null
        : device === "disk"
          ? withCode("EIO", "i/o error")
          : device === "database"
            ? new CommitUnknown("the connection was lost")
            : new Error("the engine thread ended"),
  },
  {
    name: "lost commit",
    afterwards: false,
    error: ({ device, kind }) =>
      device === "database" && kind === "commit" ? new CommitUnknown("the connection was lost") : null,
  },
];

/** The calls that fail, one in each run: all, but in `npm run test:system` every third. Its next run may take others. */
const EVERY = process.env.FLYWHEEL_TIER === "system" ? 3 : 1;
const FIRST = 1 + (Number(process.env.FLYWHEEL_PROPERTY_SEED) % EVERY);

/** Runs an operation until no call of it is left to fail. Returns what was wrong, and how many calls it makes. */
export async function failEach(
  attempt: (number: number) => Promise<{ faults: FaultPoints; problems: string[] }>,
): Promise<{ wrong: string[]; calls: number }> {
  const wrong: string[] = [];
  for (let number = FIRST; ; number += EVERY) {
    const { faults, problems } = await attempt(number);
    const { hit } = faults;
    const where = hit === null ? "without a fault" : `${number}. ${hit.device} ${hit.name}`;
    wrong.push(...problems.map((problem) => `${where}: ${problem}`));
    if (hit === null) return { wrong, calls: faults.calls.length };
  }
}

export class FaultPoints {
  /** The calls since `begin` that can fail in the way that is tried. */
  readonly calls: Call[] = [];
  /** The one that failed. */
  hit: Call | null = null;
  readonly #way: Way;
  readonly #number: number;
  #open = false;
  #over = false;

  /** The call with this number fails, from 1. */
  constructor(way: Way, number: number) {
    this.#way = way;
    this.#number = number;
  }

  /** The operation begins. */
  begin(): void {
    this.#open = !this.#over;
  }

  /** What comes now is not part of the operation any more. */
  end(): void {
    this.#open = false;
    this.#over = true;
  }

  /** Makes a call that is not part of the operation, in the middle of it. */
  apart<R>(call: () => R): R {
    const before = this.#open;
    this.#open = false;
    try {
      return call();
    } finally {
      this.#open = before;
    }
  }

  /** Returns the error that a call fails with, and whether it takes effect all the same; null = it works. */
  meet(call: Call): { error: Error; afterwards: boolean } | null {
    if (!this.#open) return null;
    const error = this.#way.error(call);
    if (error === null || this.calls.push(call) !== this.#number) return null;
    this.hit = call;
    return { error, afterwards: this.#way.afterwards };
  }
}
