// Drives the command as a person types it: real processes from dist/, a tiny real checkpoint. They end with the test.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect } from "vitest";
import { looseFetch } from "./test-server.ts";

export const BIN = fileURLToPath(new URL("../../bin/flywheel", import.meta.url));
export const MODEL = fileURLToPath(new URL("../fixtures/qwen3", import.meta.url));

export interface Served {
  process: ChildProcess;
  url: string;
  /** Everything on standard output. Complete, as `err`, when `exit` is there. */
  out: () => string;
  err: () => string;
  exit: Promise<number | null>;
}

export const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

/** Without settings for commands. A server that somebody runs on this machine must not be found either. */
export function clean(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([key]) => !/^(FLYWHEEL|VLLM|OPENAI)_/.test(key));
  return { ...Object.fromEntries(kept), FLYWHEEL_DATA: join(tmpdir(), "no-server") };
}

/** `until`: what a server prints when it is ready. */
export async function serve(args: string[], env: NodeJS.ProcessEnv = {}, until = "\ncurl "): Promise<Served> {
  const child = spawn(process.execPath, [BIN, "serve", ...args], { env: { ...clean(), ...env } });
  started.push(child);
  let out = "";
  let err = "";
  child.stdout.on("data", (bytes) => {
    out += bytes;
  });
  child.stderr.on("data", (bytes) => {
    err += bytes;
  });
  let ended = false;
  // not "exit": what it wrote last may come after that
  const exit = new Promise<number | null>((resolve) => {
    child.on("close", (code) => {
      ended = true;
      resolve(code);
    });
  });
  await expect.poll(() => out.includes(until) || ended).toBe(true);
  const url = /^listening on (http:\/\/\S+)$/m.exec(out)?.[1] ?? "";
  return { process: child, url, out: () => out, err: () => err, exit };
}

export function run(args: string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BIN, ...args], { env: { ...clean(), ...env } }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

/** The printed curl line, sent by fetch. */
export function paste(line: string) {
  const [, url, token, body] = /^curl -s (\S+) -H 'Authorization: (.*?)' -H '.*?' -d '(.*)'$/m.exec(line)!;
  return looseFetch(url!, {
    method: "POST",
    headers: { authorization: token!, "content-type": "application/json" },
    body: body!,
  });
}

export const fresh = () => mkdtempSync(join(tmpdir(), "flywheel-cli-"));
