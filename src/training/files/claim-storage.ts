// Checks --storage at a start: it can be used, belongs to this database, and is what the other servers of the database
// use. A small file in it and a row in the database tell. Nothing else is made before all of that is known.
import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { OperatorError } from "../../errors/faults.ts";
import type { Store } from "../../store/store.ts";
import { StorageTable } from "../../store/tables/storage.ts";
import { syncFolder, temporaryBeside, writeNewFile } from "../../system/files.ts";

export const MARKER = "flywheel-storage.json";

/** Where the marker of a storage is kept. All of these throw OperatorError with one line that says what to do. */
export interface MarkerPlace {
  /** As the operator wrote it. */
  readonly name: string;
  /** "folder" or "bucket". */
  readonly kind: string;
  /** What to do if it is not the one that the other servers use. */
  readonly advice: string;
  assertUsable(): Promise<void>;
  /** null = there is none. */
  read(): Promise<string | null>;
  /** Makes the marker unless another server was quicker. */
  make(text: string): Promise<void>;
  remove(): Promise<void>;
}

interface Marker {
  database: string;
  /** Of the storage. */
  folder: string;
}

/** Throws OperatorError with one line that says what to do. */
export async function claimStorage(place: MarkerPlace, store: Store): Promise<void> {
  const { name, kind, advice } = place;
  await place.assertUsable();
  const table = new StorageTable(store);
  const { database, folder: claimed } = await table.identity();
  let marker = await readMarker(place);
  const isNew = marker === null && claimed === null;
  if (isNew) {
    await place.make(`${JSON.stringify({ database, folder: randomUUID() })}\n`);
    marker = await readMarker(place);
  }
  if (marker === null) {
    throw new OperatorError(
      `--storage ${name} is not the ${kind} with the files of this database: it has no ${MARKER}. ${advice}`,
    );
  }
  if (marker.database !== database) {
    throw new OperatorError(
      `--storage ${name} belongs to another database: choose another ${kind}, or the database that it belongs to`,
    );
  }
  if ((await table.claim(marker.folder)) === marker.folder) return;
  if (isNew) await place.remove();
  throw new OperatorError(
    `--storage ${name} is not shared: another server of this database keeps its files in another place. ${advice}`,
  );
}

async function readMarker(place: MarkerPlace): Promise<Marker | null> {
  const text = await place.read();
  if (text === null) return null;
  try {
    const { database, folder } = JSON.parse(text) as Marker;
    if (typeof database === "string" && typeof folder === "string") return { database, folder };
  } catch {
    // the same as a file with something else in it
  }
  throw new OperatorError(
    `${MARKER} in --storage ${place.name} is damaged: delete it if the ${place.kind} belongs to this database, and start again`,
  );
}

/** The marker of a shared folder. */
export class FolderMarker implements MarkerPlace {
  readonly name: string;
  readonly kind = "folder";
  readonly advice = "Mount the same shared folder there on every server of the database";
  readonly #file: string;

  constructor(folder: string) {
    this.name = folder;
    this.#file = join(folder, MARKER);
  }

  async assertUsable(): Promise<void> {
    const found = statSync(this.name, { throwIfNoEntry: false });
    if (!found) throw new OperatorError(`--storage ${this.name} does not exist: make the folder, or mount it there`);
    if (!found.isDirectory()) throw new OperatorError(`--storage ${this.name} is not a folder`);
    const probe = temporaryBeside(this.#file);
    try {
      writeNewFile(probe, [new Uint8Array(1)]);
    } catch (error) {
      throw new OperatorError(`cannot write to --storage ${this.name}: ${(error as Error).message}`, { cause: error });
    } finally {
      rmSync(probe, { force: true });
    }
  }

  async read(): Promise<string | null> {
    try {
      return readFileSync(this.#file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw new OperatorError(`cannot read ${this.#file}: ${(error as Error).message}`, { cause: error });
    }
  }

  async make(text: string): Promise<void> {
    const temporary = temporaryBeside(this.#file);
    try {
      // a link, because a rename would replace the marker of another server
      writeNewFile(temporary, [new TextEncoder().encode(text)]);
      linkSync(temporary, this.#file);
      syncFolder(dirname(this.#file));
    } catch (error) {
      if ((await this.read()) !== null) return;
      throw new OperatorError(`cannot make ${this.#file}: ${(error as Error).message}`, { cause: error });
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  async remove(): Promise<void> {
    rmSync(this.#file, { force: true });
  }
}
