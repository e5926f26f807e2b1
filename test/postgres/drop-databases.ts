// Loaded before each file of the project "postgres" (vitest.config.ts): the databases of a file go when it ends.
import { afterAll } from "vitest";
import { dropDatabases } from "../support/stores.ts";

afterAll(dropDatabases);
