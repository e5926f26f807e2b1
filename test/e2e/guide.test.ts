// Runs every `sh` block of docs/guides/serving.md as written, on the bundled model, with the two variables that the guide
// sets first. Blocks marked `console` start servers or need the reader's own files.
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";
import { need, needing } from "../support/needs.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Where a reader is: in the checkout, or in a project that has OpenAI's client. */
const folderOf = (block: string) => (block.includes('"openai"') ? join(root, "test/clients") : root);
const guide = readFileSync(join(root, "docs/guides/serving.md"), "utf8");
const blocks = [...guide.matchAll(/^```sh[^\n]*\n(.*?)^```$/gms)].map((match) => match[1]!);
/** What each block must print, in the order of the guide. Independent of what the model knows. */
const expected = [
  /"content":"[^"].*"finish_reason":"(stop|length)".*\}\s*\S/s,
  /\S/,
  /"content":"\{.*"finish_reason":"(stop|length)".*"content":"(even|odd)"/s,
  /\S/,
  /^vllm:num_requests_running.*"id":"flywheel-mini"/s,
];
const hasCurl = spawnSync("bash", ["-c", "command -v curl"]).status === 0;

let server: StartedServer;
let data: string;
beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), "flywheel-guide-"));
  const flags = {
    port: 0,
    data,
    apiKey: ["k"],
    logLevel: "error",
    enableAutoToolChoice: true,
    toolCallParser: "hermes",
  };
  server = await startServer(loadConfig({ env: {}, flags }), loadModel);
});
afterAll(async () => {
  await server?.close();
  rmSync(data, { recursive: true, force: true });
});

it("checks every block of the guide", () => {
  expect(blocks).toHaveLength(expected.length);
});

needing(need("curl", hasCurl)).describe("the guide works as pasted", () => {
  it.each(blocks.map((block, i) => [i + 1, block, expected[i]!] as const))("block %i", async (_i, block, shows) => {
    const env = { ...process.env, OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: "k" };
    const result = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
      execFile("bash", ["-e", "-o", "pipefail", "-c", block], { env, cwd: folderOf(block) }, (error, out, err) =>
        resolve({ error, out, err }),
      );
    });
    expect(result.error, result.err).toBeNull();
    expect(result.out).toMatch(shows);
  });
});
