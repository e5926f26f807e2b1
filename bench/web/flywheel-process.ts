// A fresh server in a process of its own, with the bundled model and a browser's key.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The package's folder, from bench/dist/bench/web/. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

export const KEY = "bench";

export interface FlywheelProcess {
  url: string;
  stop(): void;
}

/** `more`: flags. */
export async function startFlywheel(...more: string[]): Promise<FlywheelProcess> {
  const data = mkdtempSync(join(tmpdir(), "flywheel-bench-web-"));
  const args = ["serve", "--port", "0", "--data", data, "--api-key", KEY, "--log-level", "error", ...more];
  const child = spawn(process.execPath, [join(ROOT, "bin/flywheel"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = () => {
    child.kill();
    rmSync(data, { recursive: true, force: true });
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^listening on (\S+)/.exec(line);
    if (found) return { url: found[1]!, stop };
  }
  stop();
  throw new Error("the server did not start");
}
