// The examples as they are, against a running server, in a folder where the clients are installed.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { sharedServer } from "../support/shared-server.ts";
import { API_KEY } from "../support/test-server.ts";

const folder = fileURLToPath(new URL("../../examples/", import.meta.url));
const files = readdirSync(folder);
/** The server here has no trainer; test/e2e/training-examples.test.ts runs those that need one. */
const plain = files.filter((file) => file.endsWith(".mjs") && !file.includes("train"));

const server = sharedServer();

let copies: string;
beforeAll(() => {
  copies = mkdtempSync(join(tmpdir(), "flywheel-examples-"));
  cpSync(folder, copies, { recursive: true });
  symlinkSync(fileURLToPath(new URL("node_modules", import.meta.url)), join(copies, "node_modules"), "junction");
});
afterAll(() => rmSync(copies, { recursive: true, force: true }));

it.each(plain)("%s runs", async (file) => {
  const env = { ...process.env, OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: API_KEY, MODEL: "fake" };
  const result = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
    execFile(process.execPath, [join(copies, file)], { env }, (error, out, err) => resolve({ error, out, err }));
  });
  expect(result.error, result.err).toBeNull();
  expect(result.out.trim()).not.toBe("");
});

it("are short", () => {
  for (const file of files) {
    expect(readFileSync(folder + file, "utf8").split("\n").length, file).toBeLessThanOrEqual(61);
  }
});

it("config.yaml is a configuration", () => {
  expect(loadConfig({ file: `${folder}config.yaml` })).toMatchObject({
    servedModelName: ["assistant"],
    logFormat: "json",
  });
});
