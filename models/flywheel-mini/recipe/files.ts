// Finds files of the recipe and of the repository, from the sources and from the compiled files one folder deeper.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** `name` is relative to the recipe's folder. */
export function recipePath(name: string): string {
  const file = [new URL(name, import.meta.url), new URL(`../${name}`, import.meta.url)]
    .map((url) => fileURLToPath(url))
    .find((path) => existsSync(path));
  if (file === undefined) throw new Error(`${name} is missing beside the recipe`);
  return file;
}
