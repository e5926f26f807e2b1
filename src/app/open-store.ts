// Opens the store that the options choose: a PostgreSQL database, or the file in the data directory.

import type { Config } from "../config/options.ts";
import { makeDataDir, openDataDir } from "../store/data-dir.ts";
import type { Store } from "../store/store.ts";

/** Makes the data directory only if the database can be used. */
export async function openStore(config: Pick<Config, "data" | "database" | "databaseListenUrl">): Promise<Store> {
  if (config.database === null) return openDataDir(config.data);
  // Loaded on demand, because most servers have no use for it.
  const { openPostgres } = await import("../store/open-postgres.ts");
  const store = await openPostgres(config.database, config.databaseListenUrl);
  try {
    makeDataDir(config.data);
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}
