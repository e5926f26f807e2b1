// Checks --storage at a start: it can be used, belongs to this database, and is what the other servers of the database
// use. A small file in it and a row in the database tell. Nothing else is made before all of that is known.

import { randomUUID } from "node:crypto";
import { OperatorError } from "../../errors/faults.ts";
import type { Store } from "../../store/store.ts";
import { StorageTable } from "../../store/tables/storage.ts";

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
