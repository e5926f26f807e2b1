import { type ExecFileSyncOptionsWithStringEncoding, execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, describe, expect, it } from "vitest";
import { need, needing } from "../../../test/support/needs.ts";
import { flagName, OPTIONS } from "../../config/options.ts";
import { completionScript, SHELLS, type Shell } from "../completion.command.ts";
import { createProgram } from "../main.ts";

const program = createProgram();
const folder = mkdtempSync(join(tmpdir(), "flywheel-completion-"));
afterAll(() => rmSync(folder, { recursive: true }));

function all(command: Command): Command[] {
  return [command, ...command.commands.flatMap(all)];
}

describe.each(SHELLS)("the script for %s", (shell) => {
  const script = completionScript(program, shell);

  it("knows every command, every option and every choice", () => {
    const [before, after] = { bash: ['[ "]--', '[ "]'], zsh: ["'--", ":"], fish: ["-l ", " "] }[shell];
    for (const command of all(program)) {
      for (const word of [command.name(), ...command.aliases()]) expect(script).toContain(word);
      for (const { long } of command.options) expect(script).toMatch(new RegExp(`${before}${long!.slice(2)}${after}`));
    }
    for (const name of Object.keys(OPTIONS)) {
      expect(script).toMatch(new RegExp(`${before}(no-)?${flagName(name)}${after}`));
    }
    expect(script).toContain("auto float32 int8 int4");
  });
});

const file = (name: string): string => join(folder, name).replaceAll("\\", "/");
writeFileSync(join(folder, "only-one.yaml"), "");

/** What somebody types, and what is there after the tab key. */
const TYPED: [typed: string, completed: string][] = [
  ["ser", "serve "],
  ["pol", "policies "],
  ["tokens cr", "tokens create "],
  ["tokens create --sc", "tokens create --scope "],
  ["tokens create --scope tr", "tokens create --scope training "],
  ["tokens list --js", "tokens list --json "],
  ["tokens list --dty", "tokens list --dty"], // an option of another command that is called list
  ["serve --max-model", "serve --max-model-len "],
  ["serve org/name --dtype fl", "serve org/name --dtype float32 "],
  ["serve org/name --dtype i", "serve org/name --dtype int"], // int8 or int4
  ["serve --dtype=fl", "serve --dtype=float32 "],
  ["serve --tool-call-parser kim", "serve --tool-call-parser kimi_k2 "],
  ["chat --max-t", "chat --max-tokens "],
  ["completion z", "completion zsh "],
  [`serve --config ${file("only")}`, `serve --config ${file("only-one.yaml")} `],
  [`serve ${file("only")}`, `serve ${file("only-one.yaml")} `],
];

const starts = (shell: Shell, script: string) => spawnSync(shell, ["-c", script], { encoding: "utf8" }).status === 0;
const INSTALLED: Record<Shell, boolean> = {
  // version 3, which macOS has, cannot show the line
  bash: starts("bash", "((BASH_VERSINFO[0] >= 4))"),
  zsh: starts("zsh", "zmodload zsh/zpty"),
  fish: starts("fish", "true"),
};

describe.each(SHELLS)("%s", (shell) => {
  needing(need(shell, INSTALLED[shell])).it("completes what is typed", () => {
    const path = join(folder, `completion.${shell}`);
    writeFileSync(path, completionScript(program, shell));
    const lines = TYPED.map(([typed]) => `flywheel ${typed}`);
    expect(COMPLETE[shell](path, lines)).toEqual(TYPED.map(([, completed]) => `flywheel ${completed}`));
  });
});

/** The lines after the tab key, from a shell that was started without the user's settings. */
const COMPLETE: Record<Shell, (script: string, lines: readonly string[]) => string[]> = {
  bash(script, lines) {
    const start = join(folder, "start.bash");
    writeFileSync(
      start,
      `PS1= ; source '${script}'
       show() { printf '<<%s>>' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }
       bind -x '"\\C-t": show'`,
    );
    const input = lines.map((line) => `${line}\t\x14`).join("");
    return shown(execFileSync("bash", ["--noprofile", "--rcfile", start, "-i"], { input, ...QUIET }));
  },

  zsh(script, lines) {
    // zsh completes in a terminal only; this one belongs to another zsh
    const outer = `
      zmodload zsh/zpty
      zpty inner zsh -f -i
      show() { zpty -w inner "$1" }
      show 'PS1=; unsetopt beep; shown() { print -rn -- "<<$BUFFER>>"; zle kill-whole-line }; zle -N shown'
      show "bindkey '^T' shown; source '$1'; print rea''dy"
      zpty -r inner output '*ready*'
      shift
      for line; do
        zpty -w -n inner "$line"$'\\t\\C-t'
        zpty -r inner output '*<<*>>*'
        print -r -- "$output"
      done
      zpty -d inner`;
    return shown(execFileSync("zsh", ["-f", "-c", outer, "zsh", script, ...lines], QUIET));
  },

  fish(script, lines) {
    return lines.map((line) => {
      const found = execFileSync(
        "fish",
        ["--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
        QUIET,
      );
      const words = found.split("\n").flatMap((each) => (each === "" ? [] : each.split("\t")[0]!));
      return words.length === 0
        ? line
        : line.replace(/\S+$/, "") + (words.length === 1 ? `${words[0]} ` : common(words));
    });
  },
};

const QUIET: ExecFileSyncOptionsWithStringEncoding = { encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] };

function shown(output: string): string[] {
  return [...output.matchAll(/<<(.*?)>>/g)].map(([, line]) => line!);
}

function common(words: readonly string[]): string {
  const [first = ""] = words;
  let length = first.length;
  while (!words.every((word) => word.startsWith(first.slice(0, length)))) length--;
  return first.slice(0, length);
}

it("refuses a shell that it does not know", () => {
  const strict = createProgram();
  for (const command of all(strict)) command.exitOverride().configureOutput({ writeErr: () => {} });
  expect(() => strict.parse(["node", "flywheel", "completion", "csh"])).toThrow(/'csh' is invalid.*bash, zsh, fish/);
});
