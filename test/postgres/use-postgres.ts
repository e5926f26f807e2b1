// One PostgreSQL server for a test file, with a new database for every test that asks.

import { afterAll, beforeAll } from "vitest";
import { type PostgresOptions, startPostgres, type TestPostgres } from "./start-postgres.ts";

/** Call it at the top of a file or of a `describe`. The function it returns gives the server once tests run. */
export function usePostgres(options: PostgresOptions = {}): () => TestPostgres {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres(options);
  });
  afterAll(() => server?.stop());
  return () => server;
}
