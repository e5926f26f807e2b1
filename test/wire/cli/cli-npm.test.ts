// `npm start` as the README says it, ended with a signal to npm.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { clean, fresh, MODEL, started } from "../../support/cli-process.ts";
import { needing, POSIX } from "../../support/needs.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

async function npmStart(data: string) {
  const serving = { FLYWHEEL_MODEL: MODEL, FLYWHEEL_PORT: "0", FLYWHEEL_DATA: data };
  const env = { ...clean(), ...serving, npm_config_loglevel: "warn" };
  const npm = spawn("npm", ["start"], { cwd: ROOT, env });
  started.push(npm);
  let [out, err] = ["", ""];
  npm.stdout.on("data", (bytes) => {
    out += bytes;
  });
  npm.stderr.on("data", (bytes) => {
    err += bytes;
  });
  await expect.poll(() => /^curl /m.test(out) || npm.exitCode !== null).toBe(true);
  const url = /^listening on (\S+)$/m.exec(out)![1]!;
  return { npm, url, err: () => err };
}

needing(POSIX).describe("npm start", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("ends its server when npm gets %s", async (signal) => {
    const data = fresh();
    const { npm, url, err } = await npmStart(data);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    const gone = new Promise((resolve) => npm.on("exit", resolve));
    npm.kill(signal);
    await gone;
    await expect
      .poll(() =>
        fetch(`${url}/health`).then(
          () => true,
          () => false,
        ),
      )
      .toBe(false);
    // A clean stop takes the local key away, as the last thing before the database is closed.
    await expect.poll(() => existsSync(join(data, "local-key.json"))).toBe(false);
    expect(err()).not.toMatch(/npm warn (?!Unknown (user|env) config "nodedir")/);
  });
});
