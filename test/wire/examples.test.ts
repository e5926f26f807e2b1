// The examples as they are, against a running server.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { sharedServer } from "./shared-server.ts";
import { API_KEY } from "./test-server.ts";

const folder = fileURLToPath(new URL("../../examples/", import.meta.url));
const files = readdirSync(folder);
/** The server here has no trainer; test/e2e/training-examples.test.ts runs those that need one. */
const plain = files.filter((file) => file.endsWith(".mjs") && !file.includes("train"));

const server = sharedServer();

it.each(plain)("%s runs", async (file) => {
  const env = { ...process.env, OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: API_KEY, MODEL: "fake" };
  const result = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
    execFile(process.execPath, [folder + file], { env }, (error, out, err) => resolve({ error, out, err }));
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
