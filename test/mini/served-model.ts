// The service of this repository with one model, as a process on a free port and with its own data folder.

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file of the repository, seen from the sources and from what is compiled, a folder deeper. */
export function fromRepository(path: string): string {
  const up = import.meta.url.endsWith(".ts") ? "../../" : "../../../";
  return fileURLToPath(new URL(up + path, import.meta.url));
}

export interface ServedModel {
  baseUrl: string;
  apiKey: string;
  stop(): Promise<void>;
}

/** `model` and further flags are those of `flywheel serve`. Rejects with the server's message if it does not start. */
export async function serveModel(model: string, flags: readonly string[] = []): Promise<ServedModel> {
  const entry = fromRepository("bin/flywheel");
  const data = mkdtempSync(join(tmpdir(), "flywheel-eval-"));
  const apiKey = randomUUID();
  const tools = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"];
  const child = spawn(
    process.execPath,
    [entry, "serve", model, "--port", "0", "--data", data, "--api-key", apiKey, ...tools, ...flags],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  try {
    const baseUrl = await address(child);
    return { baseUrl, apiKey, stop: () => stop(child, data) };
  } catch (error) {
    await stop(child, data);
    throw error;
  }
}

function address(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /listening on (http:\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with code ${code}:\n${output.slice(-2000)}`)));
  });
}

async function stop(child: ChildProcess, data: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }
  rmSync(data, { recursive: true, force: true });
}
