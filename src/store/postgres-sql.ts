// What differs between our SQL and that of PostgreSQL's driver: the names of parameters and the type of large numbers.

import pg from "pg";

const INT8 = 20;

const REWRITTEN = new Map<string, string>();

/** Writes ?1 as $1. Our statements have no question marks besides. */
export function forPostgres(sql: string): string {
  let text = REWRITTEN.get(sql);
  if (text === undefined) {
    text = sql.replace(/\?(\d+)/g, "$$$1");
    if (text.includes("?")) throw new Error(`parameters are written ?1, ?2 and so on: ${sql}`);
    REWRITTEN.set(sql, text);
  }
  return text;
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
