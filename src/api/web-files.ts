// The files of the web page as `npm run build` left them in dist/web, read once and kept in memory: six files and their
// compressed forms, about 100 kB.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { ENCODINGS, type Encoding, etagOf, type PageFile } from "./http/page-file.ts";

export const WEB_FOLDER: URL = new URL("../../dist/web/", import.meta.url);

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

export interface WebFile extends PageFile {
  /** From the folder, with slashes: "assets/index-1a2b.js". */
  name: string;
  /** Its name has a hash of its content. */
  isHashed: boolean;
}

/** Null if the page was not built. */
export function readWebFiles(folder: string): WebFile[] | null {
  if (!existsSync(join(folder, "index.html"))) return null;
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => name.replaceAll("\\", "/"));
  return names
    .filter((name) => extname(name) in TYPES)
    .map((name) => {
      const body = readFileSync(join(folder, name));
      const compressed: WebFile["compressed"] = {};
      for (const [encoding, ending] of Object.entries(ENCODINGS)) {
        if (names.includes(name + ending)) compressed[encoding as Encoding] = readFileSync(join(folder, name + ending));
      }
      const isHashed = name.startsWith("assets/");
      return { name, type: TYPES[extname(name)]!, body, compressed, etag: etagOf(body), isHashed };
    });
}
