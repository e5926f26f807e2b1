// One server of the fleet: a process of the built program, which can be killed, paused and started again.

import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** A start that meets an absent database ends. As a supervisor would, we start again until this much time has passed. */
const START_LIMIT_MS = 120_000;
/** The last part of a log that is shown. */
const TAIL = 1500;

/** The folder of the project, from the sources and from the compiled files. */
export const ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

/** Processes that run now. They must not outlive this one. */
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export interface MemberOptions {
  name: string;
  /** The folder of the project, or of another build of it. */
  program: string;
  role: "api" | "worker";
  port: number;
  /** Further arguments of `flywheel serve`. */
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  logFolder: string;
}

export class Member {
  readonly name: string;
  readonly role: "api" | "worker";
  readonly url: string;
  readonly log: string;
  /** How it ended when nobody ended it. */
  surprise: string | null = null;
  /** A fault is at work on it. */
  busy = false;
  readonly #options: MemberOptions;
  #child: ChildProcess | null = null;
  /** Resolves when the process has ended. */
  #ended = Promise.resolve();
  #ending = false;

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.name;
    this.role = options.role;
    this.url = `http://127.0.0.1:${options.port}`;
    this.log = join(options.logFolder, `${options.name}.log`);
  }

  /** Returns when it serves. */
  async start(): Promise<void> {
    const limit = Date.now() + START_LIMIT_MS;
    while (!(await this.tryStart())) {
      if (Date.now() > limit) throw new Error(`${this.name} did not start: ${this.tail()}`);
      await sleep(500);
    }
  }

  /** Whether its process runs, paused or not. */
  get alive(): boolean {
    return this.#child !== null && running.has(this.#child);
  }

  /** How the last process ended; null = it runs, or a signal ended it. */
  get exitCode(): number | null {
    return this.#child?.exitCode ?? null;
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.#ending = true;
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Asks it to end, and returns how it did: null if a signal ended it. */
  async stop(): Promise<number | null> {
    this.#ending = true;
    this.#child?.kill("SIGTERM");
    await this.#ended;
    return this.exitCode;
  }

  tail(): string {
    return existsSync(this.log) ? readFileSync(this.log, "utf8").slice(-TAIL) : "";
  }

  /** Whether it came to serve; false = it ended before. */
  async tryStart(): Promise<boolean> {
    const { program, args, env, role, port } = this.#options;
    const words = ["serve", "--role", role, "--port", String(port), ...args];
    const child = spawn(process.execPath, [join(program, "bin", "flywheel"), ...words], {
      cwd: program,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    this.#ending = false;
    running.add(child);
    const log = createWriteStream(this.log, { flags: "a" });
    for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
    let serving = false;
    return new Promise((resolve) => {
      let told = "";
      child.stdout.on("data", (chunk: Buffer) => {
        if (serving) return;
        told += chunk;
        serving = told.includes("listening on");
        if (serving) resolve(true);
      });
      this.#ended = new Promise((ended) => {
        child.once("close", (code, signal) => {
          running.delete(child);
          log.end();
          if (serving && !this.#ending) this.surprise = `${this.name} ended by itself (${signal ?? code})`;
          resolve(false);
          ended();
        });
      });
    });
  }
}

function rootAbove(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : rootAbove(dirname(folder));
}
