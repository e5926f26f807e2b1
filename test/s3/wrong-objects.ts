// What must hold for the objects of a bucket when no job is open and no server is at work: rows and objects agree. Returns
// what is wrong, a line each.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tables } from "../../src/store/tables/tables.ts";
import { stepDigest } from "../../src/training/files/step-folders.ts";
import type { S3Server } from "./s3-server.ts";

const MANIFEST = "manifest.json";

export async function wrongObjects(
  { modelTable, removedStepTable }: Pick<Tables, "modelTable" | "removedStepTable">,
  server: S3Server,
  /** Ends with "/". */
  prefix: string,
  graceMs = 0,
): Promise<string[]> {
  const wrong: string[] = [];
  const known = new Set<string>();
  for (const { id } of await modelTable.all()) {
    known.add(`${prefix}records/${id}/`);
    for (const { step, folder, digest } of await modelTable.steps(id)) {
      const place = `${prefix}models/${id}/${folder}/`;
      known.add(place);
      const keys = server.keys(place);
      if (!keys.includes(place + MANIFEST)) wrong.push(`step ${step} of ${id} is not complete`);
      const copy = mkdtempSync(join(tmpdir(), "objects-"));
      for (const key of keys.filter((one) => !one.endsWith(MANIFEST))) {
        writeFileSync(join(copy, key.slice(place.length)), server.objects.get(key)!.body);
      }
      if ((await stepDigest(copy)) !== digest) wrong.push(`step ${step} of ${id} has other files than its row`);
      rmSync(copy, { recursive: true });
    }
  }
  for (const { folder } of await removedStepTable.all()) known.add(`${prefix}models/${folder}/`);
  const isOld = (time: number) => Date.now() - time >= graceMs;
  for (const [key, { modified }] of server.objects) {
    const belongs = [...known].some((place) => key.startsWith(place)) || key === `${prefix}flywheel-storage.json`;
    if (!belongs && isOld(modified)) wrong.push(`${key} belongs to nothing`);
  }
  for (const { key, started } of server.uploads.values()) if (isOld(started)) wrong.push(`${key} is half uploaded`);
  return wrong;
}
