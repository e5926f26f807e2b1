// What can be said about the image without building it: pinned bases, no root, no shell around the server, and files and
// options that exist.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { envName, OPTIONS } from "../../src/config/options.ts";
import { type Instruction, readDockerfile, type Stage } from "./dockerfile.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const PACKAGE = JSON.parse(read("package.json")) as { files: string[]; engines: { node: string } };

const { stages } = readDockerfile(read("Dockerfile"));
const final = stages.at(-1)!;

function all(stage: Stage, name: string): Instruction[] {
  return stage.instructions.filter((instruction) => instruction.name === name);
}

/** Sources of the COPY instructions that read the build's context. */
const copied = stages.flatMap((stage) =>
  all(stage, "COPY")
    .filter(({ flags }) => flags.from === undefined)
    .flatMap(({ text }) => text.split(" ").slice(0, -1)),
);

it("starts from one exact version of Node that the package supports", () => {
  for (const { base } of stages) expect(base).toMatch(/^node:\d+\.\d+\.\d+-bookworm-slim$/);
  expect(new Set(stages.map(({ base }) => base)).size).toBe(1);
  const [major] = /\d+/.exec(final.base)!;
  expect(Number(major)).toBeGreaterThanOrEqual(Number(/\d+/.exec(PACKAGE.engines.node)![0]));
});

it("copies from stages that exist, and only they use the builder's platform", () => {
  const names = stages.map(({ name }) => name);
  expect(names).toEqual(["build", "packages", null]);
  const from = stages.flatMap((stage) => all(stage, "COPY")).flatMap(({ flags }) => flags.from ?? []);
  expect(from.sort()).toEqual(["build", "build", "packages"]);
});

it("runs as a user that is not root, given by number", () => {
  const users = all(final, "USER").map(({ text }) => text);
  expect(users).toEqual(["1000:1000"]);
  const order = final.instructions.map(({ name }) => name);
  expect(order.lastIndexOf("RUN")).toBeLessThan(order.indexOf("USER"));
});

it("starts the server and its check without a shell, so that signals arrive", () => {
  const entry = JSON.parse(all(final, "ENTRYPOINT")[0]!.text) as string[];
  expect(entry).toEqual(["node", "/app/bin/flywheel"]);
  expect(JSON.parse(all(final, "CMD")[0]!.text)).toEqual(["serve"]);
  const check = JSON.parse(all(final, "HEALTHCHECK")[0]!.text.replace(/^CMD /, "")) as string[];
  expect(check.slice(0, 2)).toEqual(["node", "-e"]);
  expect(check[2]).toContain("/health");
  expect(() => new Function(check[2]!)).not.toThrow();
});

it("installs what the lock file says, runs no install scripts and ships no development packages", () => {
  const runs = stages.flatMap((stage) => all(stage, "RUN")).map(({ text }) => text);
  const installs = runs.flatMap((text) => text.match(/npm (?:ci|install|i)\b[^&]*/g) ?? []);
  expect(installs).toHaveLength(2);
  for (const install of installs) expect(install).toMatch(/^npm ci .*--ignore-scripts/);
  expect(installs[1]).toContain("--omit=dev");
  expect(final.instructions.filter(({ text }) => /\bnpm\b/.test(text))).toEqual([]);
  expect(stages.flatMap((stage) => all(stage, "ADD"))).toEqual([]);
});

it("takes the ONNX Runtime of its platform along, for both platforms", () => {
  const [made] = all(stages[0]!, "RUN").filter(({ text }) => text.includes("packaging/runtime.mjs"));
  expect(made!.text).toContain('"linux/$(');
  // not every builder says which platform it builds for
  const runs = stages.flatMap((stage) => all(stage, "RUN")).filter(({ text }) => text.includes("TARGETARCH"));
  expect(runs).toHaveLength(2);
  for (const { text } of runs) expect(text).toContain(`\${TARGETARCH:-$(dpkg --print-architecture)}`);
  for (const cpu of ["x64", "arm64"]) {
    expect(existsSync(join(ROOT, "node_modules/onnxruntime-node/bin/napi-v6/linux", cpu))).toBe(true);
  }
});

it("uses options that exist and the default port", () => {
  const known = Object.keys(OPTIONS).map(envName);
  const used = stages.flatMap((stage) => stage.instructions.flatMap(({ text }) => text.match(/FLYWHEEL_\w+/g) ?? []));
  expect(used.length).toBeGreaterThan(2);
  expect(used.filter((name) => !known.includes(name))).toEqual([]);
  expect(all(final, "EXPOSE").map(({ text }) => text)).toEqual([String(OPTIONS.port.default)]);
});

it("has everything that the npm package has, except the pages and the list of what it consists of", () => {
  const inside = [...all(final, "COPY").flatMap(({ text }) => text.split(" ").slice(0, -1))].map((path) =>
    path.replace("/app/", ""),
  );
  const wanted = PACKAGE.files.filter((file) => !file.startsWith("!") && !file.endsWith(".d.ts"));
  const missing = wanted.filter((file) => !inside.some((path) => path === file || path.startsWith(`${file}/`)));
  expect(missing.sort()).toEqual(["README.md", "SECURITY.md", "docs", "sbom.json"]);
});

it("has the trainer's package and its launchers, as the npm package does", () => {
  const shipped = readdirSync(join(ROOT, "trainer"))
    .filter((name) => name.startsWith("flywheel_"))
    .map((name) => `trainer/${name}`);
  expect(shipped.length).toBeGreaterThan(1);
  expect(PACKAGE.files).toEqual(expect.arrayContaining(shipped));
});

/** Whether a path reaches the builder: the last pattern that matches decides. */
function isSent(path: string): boolean {
  const patterns = read(".dockerignore")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  let sent = true;
  for (const pattern of patterns) {
    const rule = pattern.replace("!", "");
    const inner = rule.startsWith("**/") ? rule.slice(3).replaceAll(".", "\\.").replaceAll("*", "[^/]*") : null;
    const matches =
      rule === "*" ||
      (inner === null ? `${path}/`.startsWith(`${rule}/`) : new RegExp(`(^|/)${inner}(/|$)`).test(path));
    if (matches) sent = pattern.startsWith("!");
  }
  return sent;
}

it("copies files that exist and that .dockerignore lets through", () => {
  expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(copied.filter((path) => !isSent(path))).toEqual([]);
});

it("sends the builder nothing else", () => {
  expect(
    ["node_modules", ".git", "docs", "test", "src/api/server.test.ts", "models/flywheel-mini/recipe.tar.xz"].filter(
      isSent,
    ),
  ).toEqual([]);
  const used = (path: string) =>
    copied.some((source) => `${path}/`.startsWith(`${source}/`) || source.startsWith(`${path}/`));
  expect(readdirSync(ROOT).filter((path) => isSent(path) && !used(path))).toEqual([]);
});
