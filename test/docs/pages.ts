// The Markdown pages of the project, and what they contain.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const TOP_FOLDERS = [
  ...["src", "test", "docs", "bench", "examples", "models", "native"],
  ...["bin", "deploy", "packaging", "templates", "web"],
];

/** Files of the project below `folder`, with paths from the root. */
function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !["dist", "node_modules"].includes(name))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(path) : [path];
    });
}

export const files = TOP_FOLDERS.flatMap(filesBelow);
/** Not those of single runs of the benchmarks, nor what tests and templates hold. */
export const pages = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...files.filter((file) => file.endsWith(".md") && !/^(test|templates|bench\/results)\//.test(file)),
];

export function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** The lines of a page's blocks of shell commands, each command in one. */
export function commandLines(page: string): string[] {
  const blocks = [...read(page).matchAll(/^ *```(?:sh|console(?: \w+)?)?\n(.*?)^ *```$/gms)].map(([, block]) => block!);
  return blocks.flatMap((block) => block.replace(/\\\n/g, " ").split("\n"));
}

/** The texts in backticks outside of blocks. */
export function codeWords(page: string): string[] {
  const text = read(page).replace(/^ *```.*?^ *```$/gms, "");
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, word]) => word!);
}
