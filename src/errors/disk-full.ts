// Recognises a full disk or quota, whoever reports it: the file system or the database.

/** What a job says that ends because of it. */
export const DISK_FULL = "the server's disk is full";

/** PostgreSQL's is disk_full. */
const CODES: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"]);

export function isDiskFull(error: unknown): boolean {
  return CODES.has((error as { code?: unknown } | null)?.code);
}
