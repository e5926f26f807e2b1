// `npm run bench:main-thread`: for each request of test/security/long-work.ts, how long it keeps the main thread of a server from
// everything else. It prints the longest turn of the event loop in milliseconds of processor time, and how long the request took.
// Arguments: --model FOLDER (default: the bundled one), --only REGEXP.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { LONG_WORK, type LongWork } from "../test/security/long-work.ts";

/** The package's folder, from bench/dist/bench/. */
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const KEY = "bench";
const FLAGS = ["--port", "0", "--api-key", KEY, "--log-level", "error", "--enable-auto-tool-choice"];

const { values: flags } = parseArgs({ options: { model: { type: "string" }, only: { type: "string", default: "" } } });

async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await sleep(2);
  }
}

class Server {
  readonly #process: ChildProcess;
  #printed = "";

  constructor() {
    const data = mkdtempSync(join(tmpdir(), "flywheel-main-thread-"));
    const meter = join(ROOT, "test/security/turn-meter.mjs");
    const command = ["--import", meter, join(ROOT, "bin/flywheel"), "serve", ...(flags.model ? [flags.model] : [])];
    this.#process = spawn(process.execPath, [...command, ...FLAGS, "--data", data]);
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) {
      stream.on("data", (bytes) => {
        this.#printed += bytes;
      });
    }
  }

  #found(pattern: RegExp): Promise<string> {
    return until(() => {
      if (this.#process.exitCode !== null) throw new Error(`the server ended:\n${this.#printed}`);
      return pattern.exec(this.#printed)?.[1];
    });
  }

  url(): Promise<string> {
    return this.#found(/^listening on (http:\S+)$/m);
  }

  /** The longest turn since the last call, in milliseconds of processor time. */
  async longestTurn(): Promise<number> {
    this.#printed = "";
    this.#process.kill("SIGUSR2");
    return Number(await this.#found(/longest turn ([\d.]+) ms/));
  }

  stop(): void {
    this.#process.kill("SIGKILL");
  }
}

async function send(url: string, { path, body }: LongWork): Promise<string> {
  const content = body();
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: typeof content === "string" ? content : JSON.stringify(content),
  });
  const text = await response.text();
  const message = /"(?:message|msg)": ?"((?:[^"\\]|\\.){0,90})/.exec(text)?.[1] ?? "";
  return `${response.status} ${response.ok ? "" : message}`;
}

const server = new Server();
try {
  const url = await server.url();
  const chosen = LONG_WORK.filter(({ name }) => new RegExp(flags.only).test(name));
  for (let i = 0; i < 5; i++) await send(url, LONG_WORK[0]!);
  for (const work of chosen) {
    await server.longestTurn();
    const from = performance.now();
    const answer = await send(url, work);
    const took = performance.now() - from;
    await sleep(20);
    const turn = await server.longestTurn();
    console.log(`${turn.toFixed(1).padStart(8)} ms  ${took.toFixed(0).padStart(6)} ms  ${work.name}: ${answer}`);
  }
} finally {
  server.stop();
}
