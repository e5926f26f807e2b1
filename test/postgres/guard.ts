// Our end of the guard process (guard-process.mjs), which owns a PostgreSQL server and its folder.

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Owner } from "./account.ts";

const PROGRAM = fileURLToPath(new URL("guard-process.mjs", import.meta.url));

export interface GuardConfig {
  /** The server's folder is made in here. */
  base: string;
  /** Its `bin/` has the programs. */
  programs: string;
  /** Whether the programs must be copied, because the owner may not read them where they are. */
  copy: boolean;
  /** The data of a new server, made by the first and copied by the others; null: every server makes its own. */
  template: string | null;
  owner: Owner;
  password: string;
  settings: Record<string, string>;
}

type Order = { do: "start" } | { do: "end"; signal: NodeJS.Signals };

interface Reply {
  folder?: string;
  failed?: string;
}

/** Takes one order at a time. */
export class Guard {
  /** The server's folder. */
  readonly folder: Promise<string>;
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(config: GuardConfig) {
    // Detached: Ctrl-C ends the tests, and the end of the tests ends the server.
    this.#process = fork(PROGRAM, [JSON.stringify(config)], { execArgv: [], detached: true, stdio: "inherit" });
    this.#ended = new Promise((resolve) => this.#process.once("exit", () => resolve()));
    this.folder = this.#reply().then(({ folder }) => folder!);
  }

  async order(order: Order): Promise<void> {
    const reply = this.#reply();
    this.#process.send(order);
    await reply;
  }

  async release(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    await this.#ended;
  }

  async #reply(): Promise<Reply> {
    const reply = await new Promise<Reply>((resolve) => {
      const ended = (code: number | null) => resolve({ failed: `its guard ended with ${code}` });
      this.#process.once("exit", ended);
      this.#process.once("message", (message: Reply) => {
        this.#process.off("exit", ended);
        resolve(message);
      });
    });
    if (reply.failed === undefined) return reply;
    await this.release();
    throw new Error(`The PostgreSQL server of this test did not start: ${reply.failed}`);
  }
}
