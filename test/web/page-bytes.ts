// What the built page weighs, gzipped: what index.html links, and the parts that are loaded when somebody needs them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** Gzipped. */
export const MOST_BYTES_AT_FIRST = 110_000;
export const MOST_BYTES_LATER = 400_000;

export interface PageBytes {
  first: number;
  later: number;
  /** Names of the later parts. */
  laterParts: string[];
}

/** `folder`: dist/web. */
export function pageBytes(folder: string): PageBytes {
  const read = (name: string) => readFileSync(join(folder, name));
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.(html|js|css|svg)$/.test(name),
  );
  const first = new Set(["index.html"]);
  // what index.html links, and what its scripts import at once
  for (const name of first) {
    const imports = /(?:(?:src|href)="\/|\bfrom\s*"\.\/|\bimport\s*"\.\/)((?:assets\/)?[\w.-]+)"/g;
    for (const [, found] of read(name).toString().matchAll(imports)) {
      first.add(found!.startsWith("assets/") ? found! : `assets/${found}`);
    }
  }
  const laterParts = names.filter((name) => !first.has(name));
  const sum = (parts: Iterable<string>) =>
    [...parts].reduce((total, name) => total + gzipSync(read(name), { level: 9 }).length, 0);
  return { first: sum(first), later: sum(laterParts), laterParts };
}
