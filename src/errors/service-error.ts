// Errors for clients. A ServiceError names a row of the error table and adds a message about this request. Anything else
// that is thrown becomes `internal_error`, and its text stays out of the response.

import { ERRORS, type ErrorCode, type ErrorRow } from "./error-table.ts";
import { CommitUnknown, EngineUnavailable, isDiskFull, StorageUnavailable, StoreUnreachable } from "./faults.ts";

export interface ErrorDetails {
  /** Field the error is about: a plain name, or `body.path.to.field` for schema errors. */
  param?: string | null;
  /** Seconds. Overrides the table. */
  retryAfter?: number;
  cause?: unknown;
}

/** An error for the client. Its message must not contain paths of this machine or secrets. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  /** Seconds; null if unknown or if a retry cannot help. */
  readonly retryAfter: number | null;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "ServiceError";
    this.code = code;
    this.param = details.param ?? null;
    const { repeat } = this.row;
    this.retryAfter = details.retryAfter ?? (typeof repeat === "number" ? repeat : null);
  }

  get row(): ErrorRow {
    return ERRORS[this.code];
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

/** A field has a value that is not allowed. */
export function invalidValue(message: string, param: string | null = null): ServiceError {
  return new ServiceError("invalid_value", message, { param });
}

/** Fields need or exclude each other. */
export function invalidCombination(message: string, param: string | null = null): ServiceError {
  return new ServiceError("invalid_combination", message, { param });
}

export interface ErrorEnvelope {
  error: { message: string; type: string; param: string | null; code: number };
}

/** The wire form. `error.code` is the HTTP status, as in vLLM. */
export function errorEnvelope(error: ServiceError): ErrorEnvelope {
  const { status, type } = error.row;
  return { error: { message: error.message, type, param: error.param, code: status } };
}

/** What clients are told of them. */
const FAULTS = [
  [EngineUnavailable, "engine_unavailable", "No engine is ready. Try again later."],
  [StoreUnreachable, "store_unavailable", "The database cannot be reached. Try again later."],
  [StorageUnavailable, "storage_unavailable", "The storage cannot be reached. Try again later."],
  [
    CommitUnknown,
    "outcome_unknown",
    "The database was lost during the change. Look whether it took effect before you repeat it.",
  ],
] as const;

/** Turns anything thrown into an error that is safe to show. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  for (const [Fault, code, message] of FAULTS) {
    if (thrown instanceof Fault) return new ServiceError(code, message, { cause: thrown });
  }
  if (isDiskFull(thrown)) return new ServiceError("storage_full", "The server's disk is full.", { cause: thrown });
  return new ServiceError("internal_error", "Internal server error", { cause: thrown });
}
