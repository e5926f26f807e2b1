// A real server in a process of its own, to be attacked over HTTP, and what can be seen of it from outside: what it prints, and
// what its process has used. It serves a tiny real checkpoint from dist/.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BIN, clean, MODEL } from "../support/cli-process.ts";
import { looseFetch } from "../support/test-server.ts";

/** The key of the first workspace, with every scope. */
export const KEY = "attacked-key";
/** The key of the second workspace. */
export const OTHER_KEY = "other-key";

export interface Victim {
  url: string;
  process: ChildProcess;
  /** Its data folder. */
  data: string;
  /** Everything it has printed. */
  printed(): string;
  /** `body` as text or bytes is sent as it is. */
  request(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
    signal?: AbortSignal,
  ): ReturnType<typeof looseFetch>;
  /** Resident memory in bytes: now, and the most it ever had. Linux only. */
  memory(): { now: number; peak: number };
  /** Processor time in milliseconds since it started, all threads. Linux only. */
  cpu(): number;
  stop(): Promise<void>;
}

export interface VictimOptions {
  /** A folder of a checkpoint. A tiny Qwen 3 otherwise. */
  model?: string;
  args?: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** The limit of its JavaScript heap in MiB. */
  heap?: number;
  /** How many files and sockets it may have open. */
  openFiles?: number;
  /** Its data folder, to start it again on what it wrote. */
  data?: string;
}

export async function startVictim(options: VictimOptions = {}): Promise<Victim> {
  const data = options.data ?? mkdtempSync(join(tmpdir(), "flywheel-victim-"));
  const args = [
    ...(options.heap === undefined ? [] : [`--max-old-space-size=${options.heap}`]),
    ...[BIN, "serve", options.model ?? MODEL, "--port", "0", "--data", data],
    ...["--api-key", KEY, "--api-key", OTHER_KEY, "--log-level", "warn", ...(options.args ?? [])],
  ];
  const limit = options.openFiles === undefined ? [] : ["prlimit", `--nofile=${options.openFiles}`];
  const [command, ...rest] = [...limit, process.execPath, ...args];
  const child = spawn(command!, rest, { env: { ...clean(), ...options.env } });
  const printed: string[] = [];
  child.stdout.on("data", (bytes) => printed.push(String(bytes)));
  child.stderr.on("data", (bytes) => printed.push(String(bytes)));
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const address = () => /^listening on (http:\/\/\S+)$/m.exec(printed.join(""))?.[1];
  while (address() === undefined) {
    if (child.exitCode !== null) throw new Error(`the server did not start:\n${printed.join("")}`);
    await sleep(10);
  }
  const url = address()!;
  return {
    url,
    process: child,
    data,
    printed: () => printed.join(""),
    request: (method, path, body, headers = {}, signal) => {
      const raw = body === undefined || typeof body === "string" || body instanceof Uint8Array;
      return looseFetch(url + path, {
        method,
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json", ...headers },
        body: raw ? (body as string | undefined) : JSON.stringify(body),
        signal,
      });
    },
    memory: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      const of = (field: string) => 1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)![1]);
      return { now: of("VmRSS"), peak: of("VmHWM") };
    },
    cpu: () => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
      return 10 * (Number(fields[11]) + Number(fields[12]));
    },
    stop: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
}
