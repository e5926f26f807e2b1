import { execFileSync, spawnSync } from "node:child_process";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { flagName, OPTIONS } from "../config/options.ts";
import { completionScript } from "./completion.command.ts";
import { createProgram } from "./main.ts";

const program = createProgram();
const hasBash = spawnSync("bash", ["--version"]).status === 0;

function all(command: Command): Command[] {
  return [command, ...command.commands.flatMap(all)];
}

describe.each(["bash", "zsh", "fish"])("%s", (shell) => {
  const script = completionScript(program, shell);

  it("knows every command, every option and every choice", () => {
    const [before, after] = shell === "fish" ? ["-l ", " "] : ['[ "]--', '[ "]'];
    for (const command of all(program)) {
      for (const word of [command.name(), ...command.aliases()]) expect(script).toContain(word);
      for (const { long } of command.options) expect(script).toMatch(new RegExp(`${before}${long!.slice(2)}${after}`));
    }
    for (const name of Object.keys(OPTIONS))
      expect(script).toMatch(new RegExp(`${before}(no-)?${flagName(name)}${after}`));
    expect(script).toContain("auto float32 int8 int4");
  });
});

it("refuses a shell that it does not know", () => {
  expect(() => completionScript(program, "csh")).toThrow(/no completion for csh: choose bash, zsh, fish/);
});

describe.skipIf(!hasBash)("bash accepts it and completes", () => {
  const script = completionScript(program, "bash");
  const complete = (...words: string[]) => {
    const line = `COMP_WORDS=(flywheel ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _flywheel; echo "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-euo", "pipefail", "-c", `${script}\n${line} || true`], { encoding: "utf8" })
      .trim()
      .split(" ");
  };

  it.each([
    [["ser"], ["serve"]],
    [["pol"], ["policies"]],
    [["tokens", "cr"], ["create"]],
    [["tokens", "create", "--sc"], ["--scope"]],
    [["serve", "--max-model"], ["--max-model-len"]],
    [
      ["serve", "org/name", "--dtype", "int"],
      ["int8", "int4"],
    ],
    [["chat", "--max-t"], ["--max-tokens"]],
    [["serve", "--config", ""], [""]],
  ])("%j", (words, expected) => {
    expect(complete(...words)).toEqual(expected);
  });
});
