// The blocks of commands in the README, docs/start and docs/guides. Each says in its first line whether a test runs it as written
// (`sh`, test/e2e/guide.test.ts and test/e2e/readme.test.ts) or what it needs (`console network`). Files, routes and hosts of those are checked here,
// their commands and flags in commands.test.ts.

import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { launchLine } from "../../src/cli/doctor/launch-flags.check.ts";
import { commandLines, pages, ROOT, read } from "./pages.ts";

const guides = pages.filter((page) => page === "README.md" || /^docs\/(start|guides)\//.test(page));
/** `terminal`: it holds the reader's terminal, or has something that the reader fills in. */
const NEEDS = ["terminal", "network", "docker", "gpu", "servers"];
/** Others are programs, and diagrams, which have no word. */
const KINDS = ["sh", ...NEEDS.map((need) => `console ${need}`), "python", "ts", ""];
/** Names and addresses that stand for the reader's. */
const STAND_INS = /^(127\.0\.0\.1|10\.0\.0\.\d+|db|flywheel-postgres|HOST|my-bucket|[\w.-]+\.example)$/;
const routes = Object.keys(JSON.parse(read("openapi.json")).paths as object);

describe.each(guides)("%s", (page) => {
  const commands = commandLines(page).join("\n");

  it("says of each block what it needs", () => {
    const infos = [...read(page).matchAll(/^ *```([^\n]*)\n.*?^ *```$/gms)].map(([, info]) => info!);
    expect(infos.filter((info) => !KINDS.includes(info))).toEqual([]);
  });

  it("names files that exist", () => {
    const folder = /^cd (deploy\/\w+)$/m.exec(commands)?.[1] ?? "";
    const copied = [...commands.matchAll(/^cp ([\w.-]+) /gm)].map(([, file]) => join(folder, file!));
    const named = [...commands.matchAll(/(?<![\w./-])(?:deploy|examples)\/[\w./*-]+/g)].map(String);
    expect([...copied, ...named].filter((path) => !existsAny(path))).toEqual([]);
  });

  it("asks routes that exist, of hosts that stand for the reader's", () => {
    const asked = [...commands.matchAll(/(?:\$OPENAI_BASE_URL|:8000\/v1)(\/[\w/-]+)/g)].map(([, path]) => `/v1${path}`);
    expect(asked.filter((route) => !routes.includes(route))).toEqual([]);
    const hosts = [...commands.matchAll(/\w+:\/\/(?:[^\s/@]*@)?([\w.-]+)/g)].map(([, host]) => host!);
    expect(hosts.filter((host) => !STAND_INS.test(host))).toEqual([]);
  });
});

/** Whether a path, perhaps with a `*` in its last part, leads to something. */
function existsAny(path: string): boolean {
  if (!path.includes("*")) return existsSync(join(ROOT, path));
  const [start, end] = basename(path).split("*") as [string, string];
  return readdirSync(join(ROOT, dirname(path))).some((name) => name.startsWith(start) && name.endsWith(end));
}

it("vLLM is started as `flywheel doctor` recommends", () => {
  const bench = { served: { name: "my-model" }, ours: { maxLoraRank: 64, maxLogprobs: 20 } };
  const recommended = launchLine(bench as Parameters<typeof launchLine>[0]);
  const started = commandLines("docs/guides/vllm.md").find((line) => line.includes("vllm serve"))!;
  const flags = (line: string) => line.match(/--[a-z-]+/g)!.toSorted();
  expect(flags(started)).toEqual(flags(recommended));
});
