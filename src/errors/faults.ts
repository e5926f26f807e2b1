// What can go wrong below the API, as classes that the API turns into errors.

// The connection to the database was lost during a commit, and nobody can tell whether it took effect. To repeat the
// change blindly could make it twice.
export class CommitUnknown extends Error {
  override name = "CommitUnknown";
}

// Recognises a full disk or quota, whoever reports it: the file system or the database.

/** What a job says that ends because of it. */
export const DISK_FULL = "the server's disk is full";

/** PostgreSQL's is disk_full. */
const CODES: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"]);

export function isDiskFull(error: unknown): boolean {
  return CODES.has((error as { code?: unknown } | null)?.code);
}

// None of several engines is ready. It helps to try again.
export class EngineUnavailable extends Error {
  override name = "EngineUnavailable";
}

// A mistake that the operator can fix: a bad option, file or folder. The message says what is wrong and what to do. It is
// printed as one line, without a stack.
export class OperatorError extends Error {
  override name = "OperatorError";
}

// The storage of --storage cannot be used now. Nothing was changed, or what was begun does not count.
export class StorageUnavailable extends Error {
  override name = "StorageUnavailable";
  /** What is wrong and what to do, for the operator. The message is for everybody. */
  readonly reason: string;
  /** Whether it may be over soon, without anybody doing anything. */
  readonly passing: boolean;

  constructor(reason: string, passing: boolean, cause: unknown) {
    const message = passing
      ? "the storage of the server cannot be reached"
      : "the storage of the server refuses access";
    // in the chain, so that the log shows it
    super(message, { cause: new Error(reason, { cause }) });
    this.reason = reason;
    this.passing = passing;
  }
}

/** Whether something failed only because the database is unreachable. After a CommitUnknown it may have been done nevertheless. */
export function isStoreUnreachable(error: unknown): boolean {
  return error instanceof StoreUnreachable || error instanceof CommitUnknown;
}

// The database cannot be reached. Nothing was changed, so it helps to try again.
export class StoreUnreachable extends Error {
  override name = "StoreUnreachable";
}

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
