// Checks the rules of ARCHITECTURE.md and CONTRIBUTING.md that no linter knows: who may import whom, no import circles, the
// size of files, and style.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { SMALL_FILES } from "./small-files.ts";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** These folders know nothing about the product. Every folder may import them; they import only each other. */
const common = ["errors", "json", "system", "pacing"];

/** What each folder may import besides itself and the common ones. */
const allowed: Record<string, readonly string[]> = {
  cli: ["app", "api", "client", "config", "store", "observe", "training", "text", "model"],
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
/** What a subfolder may import from the same top-level folder. Subfolders not listed here are free. */
const inside: Record<string, readonly string[]> = {
  "api/http": ["api/schema"],
  "api/schema": [],
  "api/generation": ["api", "api/http", "api/schema", "api/models"],
  "api/models": ["api", "api/http", "api/schema", "api/generation"],
  "api/dialects/completions": ["api", "api/http", "api/schema", "api/generation", "api/models"],
  "api/dialects/tokens": ["api", "api/http", "api/schema", "api/generation", "api/models"],
  "api/dialects/chat": [
    ...["api", "api/http", "api/schema", "api/generation", "api/models"],
    "api/dialects/completions", // /invocations takes either
  ],
  "api/dialects/responses": ["api", "api/http", "api/schema", "api/generation", "api/models", "api/dialects/chat"],
  "api/dialects/messages": ["api", "api/http", "api/schema", "api/generation", "api/models", "api/dialects/chat"],
  "api/access": ["api", "api/http", "api/schema"],
  "api/serving": ["api", "api/http", "api/schema", "api/generation", "api/models"],
  "api/training": ["api", "api/http", "api/schema", "api/generation", "api/models", "api/training/runs"],
  "api/training/runs": ["api", "api/http", "api/schema", "api/training"],
  "engine/cache": ["engine"],
  "store/postgres": ["store"],
  "store/tables": ["store"],
  "model/attention": ["model", "model/checkpoint"],
  "model/families": ["model/checkpoint"],
  "model/checkpoint": ["model/families", "model/gguf"],
  "model/gguf": ["model/checkpoint"],
  "model/hub": ["model/checkpoint"],
  "training/data": ["training"],
  "training/steps": ["training", "training/files"],
  "training/records": ["training", "training/data", "training/files", "training/gradient"],
  "training/jobs": [
    ...["training", "training/data", "training/files", "training/gradient", "training/records", "training/steps"],
  ],
  "training/runs": ["training", "training/gradient", "training/jobs", "training/steps"],
  "training/files": ["training"],
  "training/files/s3": ["training", "training/files"],
  "training/gradient": ["training", "training/data"],
  "training/onnx": ["training", "training/process", "training/gradient", "training/onnx/pass", "training/onnx/packing"],
  "training/onnx/pass": ["training", "training/gradient", "training/onnx/attention", "training/onnx/packing"],
  "training/onnx/attention": ["training/onnx/packing"],
  "training/onnx/packing": [],
};

const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  .map(withSlashes);
const folderOf = (file: string) => (file.includes("/") ? file.slice(0, file.indexOf("/")) : "");

function withSlashes(path: string): string {
  return path.replaceAll("\\", "/");
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), "utf8");
  return [...text.matchAll(/(?:from|import\(?)\s*"([^"]+)"/g)].map((match) => match[1]!);
}

/** The files of src/ that a file imports, types included. */
function localImportsOf(file: string): string[] {
  return importsOf(file)
    .filter((name) => name.startsWith("."))
    .map((name) => withSlashes(relative(src, resolve(src, dirname(file), name))));
}

it("every folder has a row of arrows, and no file lies outside a folder", () => {
  const folders = new Set(files.map(folderOf));
  expect([...folders].sort()).toEqual(Object.keys(allowed).sort());
});

it("imports follow the arrows", () => {
  const wrong = files.flatMap((file) => {
    const folder = folderOf(file);
    const may = [folder, ...common, ...allowed[folder]!];
    return localImportsOf(file)
      .filter((to) => !may.includes(folderOf(to)))
      .map((to) => `${file} -> ${to}`);
  });
  expect(wrong).toEqual([]);
});

it("the page imports the client and the pure parts of the trainer, and nothing of Node", () => {
  const web = fileURLToPath(new URL("../web", import.meta.url));
  const may = /^(client\/|training\/gradient\/|training\/data\/advantage\.ts$)/;
  const pages = readdirSync(web, { recursive: true, encoding: "utf8" }).filter(
    (file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file) && file !== "vite.config.ts",
  );
  expect(pages).not.toEqual([]);
  const wrong = pages.flatMap((file) => {
    const text = readFileSync(join(web, file), "utf8");
    const names = [...text.matchAll(/(?:from|import\(?)\s*"([^"]+)"/g)].map((match) => match[1]!);
    return names
      .filter((name) => {
        const to = name.startsWith(".") ? withSlashes(relative(src, resolve(web, dirname(file), name))) : name;
        return name.startsWith(".") ? !to.startsWith("../web/") && !may.test(to) : name.startsWith("node:");
      })
      .map((name) => `${file} -> ${name}`);
  });
  expect(wrong).toEqual([]);
  const long = pages.filter((file) => readFileSync(join(web, file), "utf8").split("\n").length > 251);
  expect(long).toEqual([]);
});

it("only the edge knows HTTP", () => {
  const wrong = files
    .filter((file) => !["api", "app", "cli", "client"].includes(folderOf(file)) && !file.startsWith("engine/remote/"))
    .filter((file) => importsOf(file).some((name) => /^(fastify|@fastify\/|node:http)/.test(name)));
  expect(wrong).toEqual([]);
});

it("imports inside a folder follow theirs", () => {
  const wrong = files.flatMap((file) => {
    const may = inside[dirname(file)];
    return localImportsOf(file)
      .filter((to) => may !== undefined && folderOf(to) === folderOf(file))
      .filter((to) => dirname(to) !== dirname(file) && !may!.includes(dirname(to)))
      .map((to) => `${file} -> ${to}`);
  });
  expect(wrong).toEqual([]);
});

/** Circles of imports, each as "a -> b -> a". One is reported for every import that closes a circle. */
function circles(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(" -> "));
    if (path.includes(file) || done.has(file)) return;
    path.push(file);
    for (const next of imports.get(file) ?? []) visit(next);
    path.pop();
    done.add(file);
  };
  for (const file of imports.keys()) visit(file);
  return found;
}

it("files do not import each other in a circle", () => {
  expect(circles(new Map(files.map((file) => [file, localImportsOf(file)])))).toEqual([]);
});

it("finds a circle through several files, and a file that imports itself", () => {
  const imports = { a: ["b", "d"], b: ["c", "e"], c: ["b"], d: ["e"], e: [], f: ["f"] };
  expect(circles(new Map(Object.entries(imports)))).toEqual(["b -> c -> b", "f -> f"]);
});

it("only the edge knows the errors of the wire", () => {
  const wrong = files
    .filter((file) => !["api", "errors"].includes(folderOf(file)))
    .filter((file) => importsOf(file).some((name) => name.endsWith("/service-error.ts")));
  expect(wrong).toEqual([]);
});

/** Tables, which are read one row at a time. */
const TABLES = ["config/options.ts", "errors/error-table.ts", "observe/metric-table.ts", "store/migrations.ts"];

it("no file but a table is longer than 350 lines", () => {
  const long = files
    .filter((file) => !TABLES.includes(file))
    .filter((file) => readFileSync(join(src, file), "utf8").split("\n").length > 351);
  expect(long).toEqual([]);
});

it("a file of at most 40 lines has a reason", () => {
  const small = files.filter((file) => readFileSync(join(src, file), "utf8").split("\n").length <= 41);
  expect(small.sort()).toEqual(Object.keys(SMALL_FILES).sort());
});

/** Where the sources match a pattern, as "file:line". */
function linesMatching(rule: RegExp): string[] {
  return files.flatMap((file) => {
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
  const wrong = files.flatMap((file) =>
    [...readFileSync(join(src, file), "utf8").matchAll(short)]
      .filter(([, indent, head, body]) => `${indent}${head} ${body}`.length <= 120 && !body!.includes(" // "))
      .map(([, , head]) => `${file}: ${head}`),
  );
  expect(wrong).toEqual([]);
});
