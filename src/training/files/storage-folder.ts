// Checks the folder of --storage at a start: it exists, can be written, belongs to this database, and is the same folder
// that the other servers of the database use. A small file in the folder and a row in the database tell. Nothing else is
// made before all of that is known.

import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { OperatorError } from "../../errors/operator-error.ts";
import { StorageTable } from "../../store/storage-table.ts";
import type { Store } from "../../store/store.ts";
import { syncFolder, temporaryBeside, writeNewFile } from "../../system/durable-file.ts";

const MARKER = "flywheel-storage.json";

interface Marker {
  database: string;
  folder: string;
}

/** Throws OperatorError with one line that says what to do. */
export async function claimStorage(folder: string, store: Store): Promise<void> {
  assertWritable(folder);
  const table = new StorageTable(store);
  const { database, folder: claimed } = await table.identity();
  const file = join(folder, MARKER);
  let marker = readMarker(file);
  const isNew = marker === null && claimed === null;
  if (isNew) marker = makeMarker(file, { database, folder: randomUUID() });
  if (marker === null) {
    throw new OperatorError(
      `--storage ${folder} is not the folder with the files of this database: it has no ${MARKER}. ` +
        "Mount the shared folder there; every server of the database needs the same one",
    );
  }
  if (marker.database !== database) {
    throw new OperatorError(
      `--storage ${folder} belongs to another database: choose another folder, or the database that it belongs to`,
    );
  }
  if ((await table.claim(marker.folder)) === marker.folder) return;
  if (isNew) rmSync(file, { force: true });
  throw new OperatorError(
    `--storage ${folder} is not shared: another server of this database keeps its files in another folder. ` +
      "Mount the same folder on every server",
  );
}

function assertWritable(folder: string): void {
  const found = statSync(folder, { throwIfNoEntry: false });
  if (!found) throw new OperatorError(`--storage ${folder} does not exist: make the folder, or mount it there`);
  if (!found.isDirectory()) throw new OperatorError(`--storage ${folder} is not a folder`);
  const probe = temporaryBeside(join(folder, MARKER));
  try {
    writeNewFile(probe, [new Uint8Array(1)]);
  } catch (error) {
    throw new OperatorError(`cannot write to --storage ${folder}: ${(error as Error).message}`, { cause: error });
  } finally {
    rmSync(probe, { force: true });
  }
}

function readMarker(file: string): Marker | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new OperatorError(`cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
  try {
    const { database, folder } = JSON.parse(text) as Marker;
    if (typeof database === "string" && typeof folder === "string") return { database, folder };
  } catch {
    // the same as a file with something else in it
  }
  throw new OperatorError(`${file} is damaged: delete it if the folder belongs to this database, and start again`);
}

/** Returns the marker that is there then: another server may be quicker. */
function makeMarker(file: string, marker: Marker): Marker {
  const temporary = temporaryBeside(file);
  try {
    // a link, because a rename would replace the marker of the other one
    writeNewFile(temporary, [new TextEncoder().encode(`${JSON.stringify(marker)}\n`)]);
    linkSync(temporary, file);
    syncFolder(dirname(file));
    return marker;
  } catch (error) {
    const there = readMarker(file);
    if (there) return there;
    throw new OperatorError(`cannot make ${file}: ${(error as Error).message}`, { cause: error });
  } finally {
    rmSync(temporary, { force: true });
  }
}
