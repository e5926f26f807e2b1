// The demonstration, cut short.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BIN, clean, fresh, run, started } from "../../support/cli-process.ts";

describe("flywheel demo", () => {
  it.each([
    // the trainer runs
    ["stops its server and removes its folder", /step {2}0/, ["SIGINT"]],
    ["removes its folder at the second signal, too", /is served/, ["SIGTERM", "SIGTERM"]],
  ] as const)("%s", async (_title, begun, signals) => {
    const folder = fresh();
    // A socket's path for other servers does not matter.
    const env = { ...clean(), TMPDIR: folder, FLYWHEEL_UDS: join(folder, "socket") };
    const demo = spawn(process.execPath, [BIN, "demo"], { env });
    started.push(demo);
    let out = "";
    demo.stdout.on("data", (bytes) => {
      out += bytes;
    });
    const exit = new Promise((resolve) => demo.on("exit", (_code, signal) => resolve(signal)));
    await expect.poll(() => begun.test(out)).toBe(true);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^flywheel-demo-/)]);
    for (const signal of signals) demo.kill(signal);
    expect(await exit).toBe(signals[0]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("leaves nothing when it does not start", async () => {
    const folder = fresh();
    const { code } = await run(["demo", "--port", "high"], { TMPDIR: folder });
    expect(code).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });
});
