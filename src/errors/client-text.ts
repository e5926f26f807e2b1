// What clients are told of an exception. Texts of ours are written for them. Those of the system, of libraries and of mistakes in the
// program may name hosts and files; the log has them.

/** Of the file system, the network (ENOENT), SQLite (SQLITE_BUSY) and PostgreSQL (23505). Ours are in lower case. */
const FOREIGN_CODE = /^[A-Z0-9_]+$/;

const MISTAKES = [TypeError, RangeError, ReferenceError, SyntaxError];

/** `otherwise`: instead of a text that is not ours. */
export function clientText(error: unknown, otherwise: string): string {
  if (!(error instanceof Error) || MISTAKES.some((kind) => error instanceof kind)) return otherwise;
  const { code } = error as { code?: unknown };
  return typeof code === "string" && FOREIGN_CODE.test(code) ? otherwise : error.message;
}
