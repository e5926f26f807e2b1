// One PostgreSQL server for all files of the project "postgres".

import type { TestProject } from "vitest/node";
import { startPostgres } from "./start-postgres.ts";

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide("postgresUrl", server.url);
  return () => server.stop();
}

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}
