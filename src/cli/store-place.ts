// The store of a server, for commands that work on it directly: a data directory, or a database.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { loadConfig } from "../config/load.ts";
import { type Config, envName } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { DATABASE_FILE, openStore } from "../store/data-dir.ts";
import type { Store } from "../store/store.ts";
import { givenFlags } from "./option-flags.ts";

export type Place = Pick<Config, "data" | "database" | "databaseListenUrl">;

/** The options that choose it. */
export const PLACE = ["data", "database"] as const;

export function placeOf(command: Command): Place {
  const env = Object.fromEntries(PLACE.map((name) => [envName(name), process.env[envName(name)]]));
  return loadConfig({ flags: givenFlags(command), env });
}

/** Fails if the folder has no database, instead of creating an empty one. */
export async function withExistingStore<R>(place: Place, work: (store: Store) => Promise<R>): Promise<R> {
  if (place.database === null && isMissing(join(place.data, DATABASE_FILE))) {
    const problem = `${place.data} is not the data directory of a server: it has no ${DATABASE_FILE}`;
    throw new OperatorError(`${problem}. Start a server with \`flywheel serve\`, or give its --data`);
  }
  return withStore(place, work);
}

/** An unreadable file does not count as missing; opening it reports the reason. */
function isMissing(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

export async function withStore<R>(place: Place, work: (store: Store) => Promise<R>): Promise<R> {
  const store = await openStore(place);
  try {
    return await work(store);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const what = place.database === null ? `data directory ${place.data}` : "database";
    throw new OperatorError(`cannot use the ${what}: ${(error as Error).message}`, { cause: error });
  } finally {
    await store.close();
  }
}
