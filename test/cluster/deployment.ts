// A deployment of real processes for tests that make its parts fail: API servers and workers on one PostgreSQL, which they
// reach by way of a proxy, and one folder. The servers run a tiny model and a trainer without one.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLog } from "../../src/observe/log.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import type { Store } from "../../src/store/store.ts";
import { transactionsOn } from "../../src/store/tables/tables.ts";
import { StepFolders } from "../../src/training/files/step-folders.ts";
import { clearFiles } from "../../src/training/steps/step-upkeep.ts";
import { type PostgresProxy, startPostgresProxy } from "../postgres/postgres-proxy.ts";
import { startPostgres, type TestPostgres } from "../postgres/start-postgres.ts";
import { freePort } from "../support/free-port.ts";
import { violations } from "../training-invariants/violations.ts";
import { Member, ROOT } from "./member.ts";
import { Requests } from "./requests.ts";

export interface DeploymentOptions {
  /** Their names begin with their role: "api-1", "worker-1". */
  names: readonly string[];
  /** Further arguments of all servers. */
  args?: readonly string[];
  /** Milliseconds of a gradient step. */
  stepMs?: number;
  /** Further wishes of trainer-process.mjs. */
  env?: NodeJS.ProcessEnv;
}

/** The shortest that an operator can choose. */
export const LEASE_MS = 3_000;
/** Jobs that are open when the faults end must end in this time. */
const SETTLE_MS = 300_000;

export class Deployment {
  readonly key = "cluster";
  readonly postgres: TestPostgres;
  /** Between the servers and the database. */
  readonly proxy: PostgresProxy;
  /** The database itself, with a connection that no fault of the proxy reaches. */
  readonly store: Store;
  /** Logs and files of the servers. */
  readonly folder: string;
  readonly storage: string;
  readonly members: Member[] = [];
  /** To the API servers. */
  readonly requests: Requests;
  readonly #options: DeploymentOptions;

  private constructor(
    options: DeploymentOptions,
    { postgres, proxy, store }: Pick<Deployment, "postgres" | "proxy" | "store">,
  ) {
    this.#options = options;
    this.postgres = postgres;
    this.proxy = proxy;
    this.store = store;
    this.folder = mkdtempSync(join(tmpdir(), "flywheel-deployment-"));
    this.storage = join(this.folder, "storage");
    mkdirSync(this.storage);
    this.requests = new Requests(() => this.role("api").map(({ url }) => url), this.key);
  }

  /** Returns when all servers serve. */
  static async start(options: DeploymentOptions): Promise<Deployment> {
    const postgres = await startPostgres();
    const url = await postgres.createDatabase();
    const proxy = await startPostgresProxy(url);
    const own = new Deployment(options, { postgres, proxy, store: await openPostgres(url) });
    try {
      for (const name of options.names) await own.add(name);
      await Promise.all(own.members.map((member) => member.start()));
      return own;
    } catch (error) {
      await own.close();
      throw error;
    }
  }

  role(role: "api" | "worker"): Member[] {
    return this.members.filter((member) => member.role === role);
  }

  member(name: string): Member {
    return this.members.find((member) => member.name === name)!;
  }

  /** One more server, not started yet. `program`: of another build. `database`: for another way to it than the proxy. */
  async add(name: string, { program = ROOT, database = this.proxy.url } = {}): Promise<Member> {
    const data = join(this.folder, name);
    const trainer = `${process.execPath} ${join(ROOT, "test/support/trainer-process.mjs")}`;
    const member = new Member({
      ...{ name, program, role: name.startsWith("api") ? "api" : "worker", port: await freePort() },
      args: [
        ...["--model", join(ROOT, "test/fixtures/llama"), "--served-model-name", "tiny", "--dtype", "float32"],
        ...[
          "--trainer",
          "torch",
          "--trainer-dtype",
          "float32",
          "--trainer-command",
          trainer,
          "--trainer-env",
          "FAKE_TRAINER_*",
        ],
        ...["--api-key", this.key, "--threads", "1", "--lora-rank", "4", "--lora-alpha", "8"],
        ...["--job-lease", String(LEASE_MS / 1000), "--step-grace", "0", "--log-level", "info"],
        ...["--data", data, "--storage", this.storage, "--database", database, ...(this.#options.args ?? [])],
      ],
      env: { FAKE_TRAINER_STEP_MS: String(this.#options.stepMs ?? 100), ...this.#options.env },
      logFolder: this.folder,
    });
    this.members.push(member);
    return member;
  }

  /** Waits until no job is open. Returns what is wrong, one sentence each. */
  async settle(): Promise<string[]> {
    const limit = Date.now() + SETTLE_MS;
    for (;;) {
      const open = await this.store.all<{ id: string; status: string; attempts: number }>(
        "SELECT id, status, attempts FROM jobs WHERE status IN ('PENDING', 'RUNNING')",
      );
      if (open.length === 0) return [];
      if (Date.now() > limit) {
        return open.map(({ id, status, attempts }) => `job ${id} is still ${status} after ${attempts} attempts`);
      }
      await sleep(100);
    }
  }

  /**
   * Waits for open jobs, stops the servers and checks the invariants. Returns what is wrong, one sentence each.
   * `accepted`: ids of jobs.
   */
  async finish(accepted: readonly string[]): Promise<string[]> {
    const wrong = await this.settle();
    for (const member of this.members) {
      const code = member.alive ? await member.stop() : 0;
      if (code !== 0) wrong.push(`${member.name} ended with ${code} when asked to stop: ${member.tail()}`);
      if (member.surprise !== null) wrong.push(`${member.surprise}: ${member.tail()}`);
    }
    const { store, storage: folder } = this;
    const serverErrors = this.requests.serverErrors;
    // what the servers do an hour later with the files that killed ones left
    await clearFiles(
      {
        transaction: transactionsOn(store),
        workspace: new StepFolders(folder),
        log: createLog({ level: "error", format: "text" }),
      },
      { interrupted: new Set(), minAgeMs: 0 },
    );
    return [...wrong, ...(await violations({ store, folder, accepted, serverErrors }))];
  }

  /** Ends everything. `files`: whether those of the servers go too. */
  async close({ files = true } = {}): Promise<void> {
    for (const member of this.members) {
      member.resume();
      await member.kill();
    }
    await this.store.close();
    await this.proxy.faults.close();
    await this.postgres.stop();
    if (files) rmSync(this.folder, { recursive: true, force: true });
  }
}
