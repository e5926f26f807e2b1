// The commands and flags that pages name exist: Flywheel's own, and npm's scripts. What other programs take is listed here.

import type { Command, Option } from "commander";
import { expect, it } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { codeWords, commandLines, pages, read } from "./pages.ts";

const program = createProgram();
const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
/** The change log also names what is gone. Notes and benchmarks are about other programs too. */
const checked = pages.filter((page) => page !== "CHANGELOG.md" && !/^(bench|models|native)\//.test(page));

/** Flags of other programs that pages name by themselves. */
const FOREIGN = new Set([
  ...["--api-server-count", "--gpu-memory-utilization", "--logprobs-mode", "--max-cpu-loras"], // vllm serve
  ...["--reasoning-config", "--tensor-parallel-size"],
  "--nproc-per-node", // torchrun
  "--pool", // vitest
]);

/** Words of a command line; those in quotes stay together. */
function wordsOf(line: string): string[] {
  const [bare] = line.split(/\s#\s|\s[|;&>]+\s|\$\(/) as [string];
  return bare.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
}

/** What stands behind `flywheel`, if the line runs it. */
function behindFlywheel(line: string): string[] | null {
  if (/flywheel {3}/.test(line)) return null; // a list of files
  const words = wordsOf(line);
  const at = words.findIndex((word) => /^(?:bin\/)?flywheel$/.test(word));
  const before = words.slice(0, Math.max(at, 0));
  const starts = before.every((word) =>
    /^[A-Z_]+=|^(?:node|npx|exec|nohup|ExecStart=.*)$|^--package$|\.tgz$/.test(word),
  );
  return at === -1 || !starts ? null : words.slice(at + 1);
}

function flagsOf(command: Command): string[] {
  const negated = ({ long }: Option) => long!.replace(/^--(?!no-)/, "--no-");
  const own = command.options.flatMap((option) => [option.long!, negated(option)]);
  return [...own, "--help", ...(command.parent === null ? ["--version"] : [])];
}

/** What is wrong with a command line of Flywheel; null = nothing. */
function complaint(words: readonly string[]): string | null {
  let command = program;
  let rest = words;
  while (rest[0] !== undefined && command.commands.length > 0) {
    const found = command.commands.find((child) => [child.name(), ...child.aliases()].includes(rest[0]!));
    if (found === undefined) return rest[0].startsWith("-") ? null : `no command ${rest[0]}`;
    command = found;
    rest = rest.slice(1);
  }
  const known = flagsOf(command);
  const unknown = rest.filter((word) => /^--[a-z]/.test(word)).find((word) => !known.includes(word.split("=")[0]!));
  return unknown === undefined ? null : `${command.name()} has no ${unknown}`;
}

it.each(checked)("commands in %s exist", (page) => {
  const wrong = [...commandLines(page), ...codeWords(page)].flatMap((line) => {
    const words = behindFlywheel(line);
    const why = words === null ? null : complaint(words);
    const script = /\bnpm run ([\w:-]+)/.exec(line)?.[1];
    if (script !== undefined && scripts[script] === undefined) return [`${line}: no script ${script}`];
    return why === null ? [] : [`${line}: ${why}`];
  });
  expect(wrong).toEqual([]);
});

it.each(checked)("flags in %s exist", (page) => {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
  const known = new Set(all(program).flatMap(flagsOf));
  const named = codeWords(page).flatMap((word) => /^(--[a-z][a-z-]*[a-z])(?!-?[A-Z])/.exec(word)?.[1] ?? []);
  expect(named.filter((flag) => !known.has(flag) && !FOREIGN.has(flag))).toEqual([]);
});
