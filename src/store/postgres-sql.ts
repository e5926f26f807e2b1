// What differs between our SQL and that of PostgreSQL's driver: the names of parameters and the type of large numbers.

import { createHash } from "node:crypto";
import pg from "pg";
import type { SqlValue } from "./store.ts";

const INT8 = 20;

interface Statement {
  text: string;
  name: string;
}

/** By our SQL. There are few: their texts do not depend on values. */
const STATEMENTS = new Map<string, Statement>();

/**
 * Writes ?1 as $1. Our statements have no question marks besides. `prepares`: every connection plans the statement once,
 * under a name that nothing else can have. Planning takes longer than most of our statements.
 */
export function forPostgres(sql: string, values: SqlValue[], prepares: boolean): pg.QueryConfig {
  let statement = STATEMENTS.get(sql);
  if (statement === undefined) {
    const text = sql.replace(/\?(\d+)/g, "$$$1");
    if (text.includes("?")) throw new Error(`parameters are written ?1, ?2 and so on: ${sql}`);
    statement = { text, name: createHash("sha256").update(text).digest("hex").slice(0, 32) };
    STATEMENTS.set(sql, statement);
  }
  const { text, name } = statement;
  return prepares ? { name, text, values } : { text, values };
}

/** Rows have plain numbers, as those of SQLite do. */
export const ROW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === INT8 ? readInt8 : pg.types.getTypeParser(oid, format as "text")) as pg.CustomTypesConfig["getTypeParser"],
};

function readInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`the database has a number that is too large: ${text}`);
  return value;
}
