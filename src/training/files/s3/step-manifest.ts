// What a step in a bucket consists of. The name of the step's folder ends with the digest of this list, and the list has
// the digests of the files. So whoever knows the name, which is in the step's row, can check every byte, of all the files
// or of some. A publication has an id of its own in the list: no two have the same name, even with the same files.

import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { DamagedFiles } from "../shared-files.ts";

export interface ManifestFile {
  name: string;
  bytes: number;
  sha256: string;
}

export interface Manifest {
  publication: string;
  files: ManifestFile[];
}

/** The last object of a step to be written: a step without it is not complete. */
export const MANIFEST = "manifest.json";

const FOLDER = /^step-(\d+)-([0-9a-f]{64})$/;

export interface DescribedStep {
  folder: string;
  manifest: Manifest;
  /** What `folder` has the digest of. */
  text: Uint8Array;
}

/** Describes the files of a folder as a new publication. */
export async function describeStep(path: string, step: number): Promise<DescribedStep> {
  const files: ManifestFile[] = [];
  for (const name of (await readdir(path)).sort()) {
    const file = join(path, name);
    files.push({ name, bytes: (await stat(file)).size, sha256: await fileDigest(file) });
  }
  const manifest = { publication: randomUUID(), files };
  const text = new TextEncoder().encode(`${JSON.stringify(manifest)}\n`);
  return { folder: `step-${step}-${digestOf(text)}`, manifest, text };
}

/** Throws DamagedFiles unless this is the list that the name of the folder has the digest of. */
export function readManifest(folder: string, text: Uint8Array): Manifest {
  if (FOLDER.exec(folder)?.[2] !== digestOf(text)) throw new DamagedFiles(`${MANIFEST} of ${folder} was changed`);
  return JSON.parse(new TextDecoder().decode(text)) as Manifest;
}

/** The number of a step, from the name of its folder; null = no such name. */
export function stepOf(folder: string): number | null {
  const found = FOLDER.exec(folder);
  return found ? Number(found[1]) : null;
}

/** SHA-256 in hex. */
export async function fileDigest(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(part as Buffer);
  return hash.digest("hex");
}

function digestOf(text: Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}
