// Keeps the local key of a running server (store/local-key.ts): a token with every scope for whoever may read the data
// directory. A key works for two days and is replaced every day, so that one from a backup or a crash is soon useless.

import type { Log } from "../observe/log.ts";
import { SerialWork } from "../pacing/work.ts";
import { formerToken, LOCAL_KEY_FILE, removeLocalKey, writeLocalKey } from "../store/local-key.ts";
import { SCOPES, type TokenStore } from "../store/tokens.ts";

const LIFETIME_SECONDS = 2 * 86_400;
const RENEWAL_MS = 86_400_000;

export interface LocalAccessOptions {
  dataDir: string;
  /** As this machine reaches the server. */
  url: string;
  /** Name of the workspace whose policies and jobs the next key has. */
  workspace: () => Promise<string>;
}

export class LocalKeyKeeper {
  readonly #tokens: TokenStore;
  readonly #options: LocalAccessOptions;
  readonly #log: Log;
  readonly #work = new SerialWork();
  /** Texts of the keys made so far that may still be valid, oldest first. */
  readonly #made: string[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(tokens: TokenStore, options: LocalAccessOptions, log: Log) {
    this.#tokens = tokens;
    this.#options = options;
    this.#log = log;
  }

  /** The file is there when this resolves, unless it cannot be written: then a warning says so, and the server goes on. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#renew(), RENEWAL_MS);
    this.#timer.unref();
    await this.#warned(() => this.#forgetFormer());
    await this.#renew();
  }

  /** Takes the file and its tokens away. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#work.idle();
    // The file first: a database that is unreachable must not keep it. Tokens that stay then expire.
    await this.#warned(async () => {
      removeLocalKey(this.#options.dataDir, this.#made);
      for (const secret of this.#made) await this.#tokens.removeLocal(secret);
    });
  }

  /** A server that crashed left its key. */
  async #forgetFormer(): Promise<void> {
    const former = formerToken(this.#options.dataDir);
    if (former !== null) await this.#tokens.removeLocal(former);
  }

  #renew(): Promise<void> {
    return this.#work.run(() =>
      this.#warned(async () => {
        const { dataDir, url } = this.#options;
        const workspace = await this.#options.workspace();
        const token = { name: "local key", scopes: SCOPES, lifetime: LIFETIME_SECONDS, workspace };
        const { secret } = await this.#tokens.createLocal(token);
        this.#made.push(secret);
        writeLocalKey(dataDir, { url, token: secret, pid: process.pid });
      }),
    );
  }

  /** The server works without it. */
  async #warned(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#log.warn(`${LOCAL_KEY_FILE} is not up to date; commands on this machine may need --api-key`, { error });
    }
  }
}
