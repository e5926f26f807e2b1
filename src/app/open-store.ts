// Opens the store that the options choose: a PostgreSQL database, or the file in the data directory.

import { openDataDir } from "../store/data-dir.ts";
import type { Store } from "../store/store.ts";

/** Where the state is: in a database, or in the data directory. */
export interface StoreChoice {
  data: string;
  database: string | null;
  databaseListenUrl: string | null;
}

/** Makes the data directory only if the state is in there. */
export async function openStore(config: StoreChoice): Promise<Store> {
  if (config.database === null) return openDataDir(config.data);
  // Loaded on demand, because most servers have no use for it.
  const { openPostgres } = await import("../store/open-postgres.ts");
  return openPostgres(config.database, config.databaseListenUrl);
}
