// The files of the web page as `npm run build` left them in dist/web, read once and kept in memory: six files and their
// compressed forms, about 100 kB.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

export const WEB_FOLDER: URL = new URL("../../dist/web/", import.meta.url);

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** In the order of preference, with the ending of the compressed file. */
const ENCODINGS = { br: ".br", gzip: ".gz" } as const;
export type Encoding = keyof typeof ENCODINGS;

export interface WebFile {
  /** From the folder, with slashes: "assets/index-1a2b.js". */
  name: string;
  type: string;
  body: Buffer;
  compressed: Partial<Record<Encoding, Buffer>>;
  etag: string;
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
      const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
      return { name, type: TYPES[extname(name)]!, body, compressed, etag, isHashed: name.startsWith("assets/") };
    });
}

/** The best encoding that the client takes and the file has; null: as it is. */
export function bestEncoding(accepted: string | undefined, file: Pick<WebFile, "compressed">): Encoding | null {
  const takes = new Set(
    (accepted ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.trim().split(/\s*;\s*/))
      .filter(([, quality]) => !/^q=0(\.0*)?$/.test(quality ?? ""))
      .map(([name]) => name),
  );
  const names = Object.keys(ENCODINGS) as Encoding[];
  return names.find((name) => takes.has(name) && file.compressed[name] !== undefined) ?? null;
}
