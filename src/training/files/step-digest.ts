// The digest of a step: SHA-256 over the names, sizes and contents of its files, in the order of their names. The same
// files have the same digest on every machine, whatever their folder is called.

import { createHash } from "node:crypto";
import { createReadStream, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** In hex. */
export async function stepDigest(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder).sort()) {
    const file = join(folder, name);
    hash.update(`${name}\0${statSync(file).size}\0`);
    for await (const part of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(part as Buffer);
  }
  return hash.digest("hex");
}
