// Reads a trainer command as the shell would, as far as the doctor needs it: the program that it starts, and the Python
// behind that program.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { promisify } from "node:util";
import { childEnvironment } from "../../system/child-environment.ts";

export interface TrainerCommand {
  /** Variables that the command sets before the program, such as CUDA_VISIBLE_DEVICES=0. */
  env: Record<string, string>;
  program: string;
  /** null when it is not on the PATH. */
  path: string | null;
  /** The Python that runs the program. null for a launcher that is not a Python program. */
  python: string | null;
}

/** A word of the shell, which may have quoted parts. */
const WORD = /(?:"[^"]*"|'[^']*'|[^\s"'])+/g;
const ASSIGNMENT = /^(\w+)=(.*)$/s;
/** The first line of a script: a Python, perhaps found by env. */
const SHEBANG = /^#!\s*(?:\/usr\/bin\/env\s+)?(\S*python[\d.]*)\s/;
/** Paths that are too long for a first line stand in the second, as pip writes them. */
const LONG_SHEBANG = /^#!.*\n'''exec' "?([^"\s]+)/;

export async function readCommand(command: string): Promise<TrainerCommand> {
  const words = (command.match(WORD) ?? []).map((word) => word.replaceAll(/["']/g, ""));
  const env: Record<string, string> = {};
  while (words[0] === "env" || ASSIGNMENT.test(words[0] ?? "")) {
    const [, name, value] = ASSIGNMENT.exec(words.shift()!) ?? [];
    if (name !== undefined) env[name] = value!;
  }
  const program = words[0] ?? "";
  const path = await pathOf(program, env);
  return { env, program, path, python: path === null ? null : pythonOf(path) };
}

async function pathOf(program: string, env: Record<string, string>): Promise<string | null> {
  try {
    const options = { env: childEnvironment([], env) };
    const { stdout } = await promisify(execFile)("sh", ["-c", 'command -v -- "$0"', program], options);
    return stdout.trim() || null;
  } catch {
    // the shell's way to say that there is none
    return null;
  }
}

/** A Python, or the one that a script such as torchrun names. */
function pythonOf(path: string): string | null {
  if (/^python[\d.]*$/.test(basename(path))) return path;
  const start = readFileSync(path).subarray(0, 1000).toString();
  return (SHEBANG.exec(start) ?? LONG_SHEBANG.exec(start))?.[1] ?? null;
}
