// The archive with what made the bundled model, unpacked as its card says.

import { execFile, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { need, needing, POSIX } from "../support/needs.ts";
import { heldOutCases } from "./cases.ts";
import { fromRepository } from "./served-model.ts";

const run = promisify(execFile);
const XZ = need("xz", spawnSync("xz", ["--version"]).status === 0);
const card = readFileSync(fromRepository("models/flywheel-mini/README.md"), "utf8");

needing(XZ, POSIX).describe("the recipe", () => {
  const root = mkdtempSync(join(tmpdir(), "recipe-"));
  const model = join(root, "models/flywheel-mini");

  beforeAll(async () => {
    // the recipe stands on the repository around it
    mkdirSync(model, { recursive: true });
    for (const name of ["package.json", "tsconfig.json", "models/flywheel-mini/chat_template.jinja"]) {
      copyFileSync(fromRepository(name), join(root, name));
    }
    for (const name of ["node_modules", "dist", "bin"]) symlinkSync(fromRepository(name), join(root, name));
    await run("tar", ["-C", model, "-xf", fromRepository("models/flywheel-mini/recipe.tar.xz")]);
    await run(process.execPath, [fromRepository("node_modules/typescript/bin/tsc"), "-p", join(model, "recipe")]);
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it("has the files that the card and its own page name", () => {
    const page = readFileSync(join(model, "recipe/README.md"), "utf8");
    const named = [
      ...[...card.matchAll(/\brecipe\/[\w./-]*\w/g)].map(([path]) => path),
      ...[...page.matchAll(/`([\w-]+\.(?:py|ts|mjs|sh|json))`/g)].map(([, name]) => `recipe/${name}`),
    ];
    expect(named.length).toBeGreaterThan(25);
    expect(named.filter((path) => !existsSync(join(model, path)))).toEqual([]);
  });

  it("draws the held-out cases that the evaluation asks", async () => {
    const draw = `const { heldOutCases } = await import(process.argv[1]);
      console.log(JSON.stringify(heldOutCases("eval", 200)));`;
    const node = ["--input-type=module", "-e", draw, join(model, "recipe/dist/cases.js")];
    const drawn = JSON.parse((await run(process.execPath, node, { maxBuffer: 2 ** 26 })).stdout) as {
      task: string;
      conversation: { family: string; messages: unknown[] };
    }[];
    const asked = drawn.map(({ task, conversation: { family: _, messages, ...rest } }) => ({
      task,
      messages: messages.slice(0, -1), // the last one is the reply to learn
      ...rest,
    }));
    expect(asked).toEqual(heldOutCases(200).map(({ id: _, source: __, ...one }) => one));
  });

  it("finishes a model: adds what a training job learned to its weights", async () => {
    const messages = [
      { role: "user", content: "Say yes." },
      { role: "assistant", content: "Yes." },
    ];
    const [examples, out] = [join(root, "examples.jsonl"), join(root, "finished")];
    writeFileSync(examples, `${JSON.stringify({ messages })}\n`.repeat(20));
    const start = fromRepository("test/fixtures/llama");
    const { stdout } = await run(process.execPath, [join(model, "recipe/finish.mjs"), start, examples, out]);
    expect(stdout).toBe(`merged 14 linear layers into ${join(out, "model.safetensors")}\n`);
    expect(existsSync(join(out, "model.safetensors"))).toBe(true);
  });

  it("passes its own tests", async () => {
    const vitest = fromRepository("node_modules/vitest/vitest.mjs");
    const { stdout } = await run(process.execPath, [vitest, "run", "--root", root, "--testTimeout=600000"]);
    expect(stdout).toContain("generator.test.ts");
  });
});
