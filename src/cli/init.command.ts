// `flywheel init FOLDER`: a new project that trains a policy: tasks, a reward, a loop and its test, in TypeScript.

import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { OperatorError } from "../errors/faults.ts";

const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const TEMPLATE = join(PACKAGE, "templates/agent");

export function addInitCommand(program: Command): void {
  program
    .command("init")
    .description("Make a folder with a small agent to train: tasks, a reward, a loop and its test, in TypeScript.")
    .argument("<FOLDER>", "where; its name becomes the policy's")
    .action((folder: string) => {
      makeProject(resolve(folder));
      console.log(
        `made ${folder}. Next:\n  cd ${folder}\n  npm install\n  npm test\n  npm start        # trains it, with the running server or one of its own`,
      );
    });
}

/** Leaves nothing behind when it fails. */
export function makeProject(folder: string, template = TEMPLATE): void {
  const name = basename(folder);
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) {
    throw new OperatorError(`${name} cannot be a policy's name: use a-z, 0-9, - _ . and begin with a letter or digit`);
  }
  const existed = existsSync(folder);
  if (existed && !statSync(folder).isDirectory()) throw new OperatorError(`${folder} is a file: choose a new folder`);
  if (existed && readdirSync(folder).length > 0) throw new OperatorError(`${folder} is not empty: choose a new folder`);
  try {
    fill(folder, name, template);
  } catch (error) {
    const made = existed ? readdirSync(folder).map((file) => join(folder, file)) : [folder];
    for (const path of made.filter((each) => existsSync(each))) rmSync(path, { recursive: true });
    throw new OperatorError(`cannot make ${folder}: ${(error as Error).message}`, { cause: error });
  }
}

function fill(folder: string, name: string, template: string): void {
  cpSync(template, folder, { recursive: true });
  // npm leaves files of this name out of packages.
  renameSync(join(folder, "gitignore"), join(folder, ".gitignore"));
  // npm works in the real folder, where a relative path through a link would lead elsewhere.
  const link = relative(realpathSync(folder), PACKAGE).replaceAll("\\", "/").replace(/\/$/, "");
  for (const file of ["package.json", "README.md", "src/train.ts"]) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.replaceAll("agent-name", name).replaceAll("flywheel-package", `file:${link}`));
  }
}
