// The arrows between folders (CONTRIBUTING.md), checked on the imports themselves; and the size of files.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** Small things without knowledge of the product. Every folder may import them; they import only each other. */
const common = ["errors", "json", "system", "pacing"];

/** What each folder may import beside itself and the common ones. Folders lower in the list never import higher ones. */
const allowed: Record<string, readonly string[]> = {
  cli: ["app", "api", "client", "config", "store", "observe", "training"],
  app: ["api", "training", "engine", "text", "grammar", "model", "config", "store", "observe"],
  api: ["training", "engine", "text", "grammar", "sampling", "model", "config", "store", "observe"],
  training: ["observe", "engine", "text", "model", "graph", "store"],
  observe: ["engine"],
  engine: ["sampling", "grammar", "model"],
  text: ["grammar"],
  sampling: [],
  grammar: [],
  model: ["graph"],
  graph: [],
  config: [],
  store: [],
  client: [],
  errors: [],
  json: [],
  system: [],
  pacing: [],
};
/** What the folders inside a folder may import of it, where that says something. */
const inside: Record<string, readonly string[]> = {
  "api/http": [],
  "api/request": ["api/http"],
  "api/run": ["api", "api/http", "api/request"],
  "api/models": ["api", "api/http", "api/request", "api/run"],
  "api/chat": ["api", "api/http", "api/request", "api/run"],
  "api/completions": ["api", "api/http", "api/request", "api/run"],
  "api/training": ["api", "api/http", "api/request", "api/models"],
  "engine/cache": ["engine"],
  "model/attention": ["model", "model/checkpoint"],
  "model/families": ["model/checkpoint"],
  "model/checkpoint": ["model/families"],
  "model/hub": ["model/checkpoint"],
  "training/data": ["training"],
  "training/steps": ["training", "training/files"],
  "training/jobs": ["training", "training/data", "training/files", "training/gradient", "training/steps"],
  "training/files": ["training"],
  "training/gradient": ["training", "training/data", "training/gradient/algorithms"],
  "training/onnx": ["training", "training/gradient", "training/onnx/pass", "training/onnx/packing"],
  "training/onnx/pass": ["training/gradient", "training/onnx/attention", "training/onnx/packing"],
  "training/onnx/attention": ["training/onnx/packing"],
  "training/onnx/packing": [],
};

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

it("every folder has a place among the arrows, and no file lies beside them", () => {
  const folders = new Set(files.map(folderOf));
  expect([...folders].sort()).toEqual(Object.keys(allowed).sort());
});

it("imports follow the arrows", () => {
  const wrong: string[] = [];
  for (const file of files.filter((name) => !name.endsWith(".test.ts"))) {
    const folder = folderOf(file);
    for (const name of importsOf(file)) {
      if (!name.startsWith(".")) {
        const knowsHttp = ["api", "app", "cli", "client"].includes(folder);
        if (/^(fastify|@fastify\/|node:http)/.test(name) && !knowsHttp) wrong.push(`${file} -> ${name}`);
        continue;
      }
      const target = withSlashes(relative(src, resolve(src, dirname(file), name)));
      const to = folderOf(target);
      if (to !== folder && !common.includes(to) && !allowed[folder]!.includes(to)) wrong.push(`${file} -> ${target}`);
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

it("only the edge knows the errors of the wire", () => {
  const wrong = files
    .filter((file) => !file.endsWith(".test.ts") && !["api", "errors"].includes(folderOf(file)))
    .filter((file) => importsOf(file).some((name) => name.endsWith("/service-error.ts")));
  expect(wrong).toEqual([]);
});

it("no file is longer than 350 lines", () => {
  const long = files.filter(
    (file) => !file.endsWith(".test.ts") && readFileSync(join(src, file), "utf8").split("\n").length > 351,
  );
  expect(long).toEqual([]);
});

/** Sources with the lines that break a rule, as "file:line". */
function linesMatching(rule: RegExp): string[] {
  return files
    .filter((file) => !file.endsWith(".test.ts"))
    .flatMap((file) => {
      const text = readFileSync(join(src, file), "utf8");
      return [...text.matchAll(rule)].map(({ index }) => `${file}:${text.slice(0, index).split("\n").length}`);
    });
}

it("private members are #private", () => {
  expect(linesMatching(/^\s+(private|protected) (?!constructor)/gm)).toEqual([]);
});

it("constants of a module that hold plain data are in capitals", () => {
  const data = String.raw`-?[0-9][0-9_.e*+ ()/-]*;|"[^"\n]*";|\/.*\/[a-z]*;|new (?:Set|Map)\b|\[`;
  expect(linesMatching(new RegExp(`^(export )?const [a-z][A-Za-z0-9]*(: [^=\n]+)? = (?:${data})`, "gm"))).toEqual([]);
});

it("a body on a line of its own has braces", () => {
  expect(linesMatching(/^ *(?:\} )?(?:else )?(?:if|for|while) \(.*\)$|^ *(?:\} )?else$/gm)).toEqual([]);
});

it("a body that fits on the line of its condition has no braces", () => {
  const short =
    /^([ ]*)((?:if|for|while) \([^\n]*\)) \{\n\1 {2}(?!\/\/|const |let |if |for |while )([^\n]*;)\n\1\}\n/gm;
  const wrong = files
    .filter((file) => !file.endsWith(".test.ts"))
    .flatMap((file) =>
      [...readFileSync(join(src, file), "utf8").matchAll(short)]
        .filter(([, indent, head, body]) => `${indent}${head} ${body}`.length <= 120 && !body!.includes(" // "))
        .map(([, , head]) => `${file}: ${head}`),
    );
  expect(wrong).toEqual([]);
});
