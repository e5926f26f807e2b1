// The arrows between folders (CONTRIBUTING.md), checked on the imports themselves; and the size of files.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** What each folder may import, beside itself and files directly in src/. `api` and `cli` may import everything. */
const allowed: Record<string, readonly string[]> = {
  graph: [],
  sampling: ["engine"],
  model: ["graph", "engine"],
  grammar: ["engine"],
  engine: ["sampling", "model", "grammar"],
  text: ["grammar"],
  store: [],
  observe: ["engine"],
  config: [],
  training: ["model", "graph", "store", "text", "observe", "engine"],
  client: [],
};
/** What the folders inside a folder may import of it, where that says something. */
const inside: Record<string, readonly string[]> = {
  "engine/cache": ["engine"],
  "model/attention": ["model/checkpoint"],
  "model/families": ["model/checkpoint"],
  "model/checkpoint": ["model/families"],
  "model/hub": ["model/checkpoint"],
  "training/data": ["training"],
  "training/files": ["training"],
  "training/gradient": ["training", "training/data", "training/gradient/algorithms"],
  "training/onnx": ["training", "training/gradient"],
};
/** Of engine/, only these are contracts that others below it may know. */
const contracts = ["engine/contract.ts", "engine/runner.ts", "engine/constraint.ts", "engine/model-host.ts"];

const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map(withSlashes);
const folderOf = (file: string) => (file.includes("/") ? file.slice(0, file.indexOf("/")) : "");

function withSlashes(path: string): string {
  return path.replaceAll("\\", "/");
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), "utf8");
  return [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map((match) => match[1]!);
}

it("imports follow the arrows", () => {
  const wrong: string[] = [];
  for (const file of files) {
    const folder = folderOf(file);
    const may = allowed[folder];
    if (may === undefined) continue;
    for (const name of importsOf(file)) {
      if (!name.startsWith(".")) {
        if (/^(fastify|@fastify\/|node:http)/.test(name) && folder !== "client") wrong.push(`${file} -> ${name}`);
        continue;
      }
      const target = withSlashes(relative(src, resolve(src, dirname(file), name)));
      const to = folderOf(target);
      if (to === "" || to === folder || file.endsWith(".test.ts")) continue;
      const known = may.includes(to) && (to !== "engine" || folder === "training" || contracts.includes(target));
      if (!known) wrong.push(`${file} -> ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

it("imports inside a folder follow theirs", () => {
  const sources = files.filter((file) => !file.endsWith(".test.ts"));
  const wrong = sources.flatMap((file) => {
    const may = inside[dirname(file)];
    const targets = importsOf(file)
      .filter((name) => name.startsWith("."))
      .map((name) => withSlashes(relative(src, resolve(src, dirname(file), name))));
    return targets
      .filter((to) => may !== undefined && folderOf(to) === folderOf(file))
      .filter((to) => dirname(to) !== dirname(file) && !may!.includes(dirname(to)))
      .map((to) => `${file} -> ${to}`);
  });
  expect(wrong).toEqual([]);
});

it("no file is longer than 350 lines", () => {
  const long = files.filter(
    (file) => !file.endsWith(".test.ts") && readFileSync(join(src, file), "utf8").split("\n").length > 351,
  );
  expect(long).toEqual([]);
});
