// Runs every `sh` block of docs/start and docs/guides as written, in the order of its page, on a server with the bundled model: in a
// folder with `bin`, `examples` and OpenAI's client, and with the variables of docs/start/serve.md. test/clients has that client: it
// is installed for the system tests.

import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import { need, needing } from "../support/needs.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = ["start", "guides"].flatMap((folder) =>
  readdirSync(join(ROOT, "docs", folder)).map((name) => `${folder}/${name}`),
);

/** What each block must print, in the order of its page. Independent of what the model knows. */
const EXPECTED: Record<string, RegExp[]> = {
  "start/serve.md": [
    /\S\n.*^server +http.*\b0 wrong$/ms,
    /"content":"[^"].*"finish_reason":"(stop|length)"/s,
    /\S/,
    /^fw_.*\bmy-app\b.*^revoked \w+ \(my-app\)$/ms,
  ],
  "start/train.md": [
    /"name":"my-agent"/,
    /^$/,
    /^$/,
    /^my-agent is at step 1 .*^my-agent@1 /ms,
    /^step 1: .*\nstep 2: .*\nbrief:step2: /m,
  ],
  "start/deploy.md": [/fw_/],
  "guides/models.md": [/^family +qwen3.*^weights .*: fits$/ms],
  "guides/structured-output.md": [/"content":"\{.*"finish_reason":"(stop|length)"/s, /"content":"(even|odd)"/],
  "guides/tools.md": [/\S/],
  "guides/monitoring.md": [/^vllm:num_requests_running.*"id":"flywheel-mini"/ms],
  "guides/learning.md": [/my-agent/],
};

const hasCurl = spawnSync("bash", ["-c", "command -v curl"]).status === 0;

let server: StartedServer;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "flywheel-guide-"));
  for (const name of ["bin", "examples"]) symlinkSync(join(ROOT, name), join(folder, name));
  symlinkSync(join(ROOT, "test/clients/node_modules"), join(folder, "node_modules"));
  const flags = { port: 0, data: join(folder, "data"), apiKey: ["k"], logLevel: "error", enableAutoToolChoice: true };
  server = await startServer(loadConfig({ env: {}, flags }), loadModel, [createTraining]);
});
afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The `sh` blocks of a page, without the indentation of a list. */
function blocksOf(page: string): string[] {
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  return [...text.matchAll(/^( *)```sh\n(.*?)^ *```$/gms)].map(([, indent, block]) =>
    block!.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

it("knows what every block prints", () => {
  const counts = PAGES.map((page) => [page, blocksOf(page).length] as const).filter(([, count]) => count > 0);
  expect(Object.fromEntries(counts)).toEqual(
    Object.fromEntries(Object.entries(EXPECTED).map(([page, patterns]) => [page, patterns.length])),
  );
});

const blocks = Object.entries(EXPECTED).flatMap(([page, patterns]) =>
  patterns.map((shows, i) => [page, i + 1, shows] as const),
);

needing(need("curl", hasCurl)).describe("as pasted", () => {
  it.each(blocks)("%s, block %i", async (page, number, shows) => {
    const env = {
      ...process.env,
      FLYWHEEL_DATA: join(folder, "data"),
      HF_HUB_CACHE: join(folder, "hub"),
      OPENAI_BASE_URL: `${server.url}/v1`,
      OPENAI_API_KEY: "k",
    };
    const script = blocksOf(page)[number - 1]!;
    const result = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
      execFile("bash", ["-e", "-o", "pipefail", "-c", script], { env, cwd: folder }, (error, out, err) =>
        resolve({ error, out, err }),
      );
    });
    expect(result.error, result.out + result.err).toBeNull();
    expect(result.out).toMatch(shows);
  });
});
