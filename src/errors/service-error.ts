// Errors that are meant for clients. A thrown ServiceError carries one row of the error table plus the sentence about
// this request; anything else that is thrown becomes `internal_error`, its text kept out of the answer.
import { ERRORS, type ErrorCode, type ErrorRow } from "./error-table.ts";

export interface ErrorDetails {
  /** Field the error is about: a plain name, or `body.path.to.field` for schema errors. */
  param?: string | null;
  /** Seconds, where more is known than the table says. */
  retryAfter?: number;
  cause?: unknown;
}

/** An error that is meant for the client. Its message must not contain paths of this machine or secrets. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  /** Seconds; null: nobody knows, or it is no use. */
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

export interface ErrorEnvelope {
  error: { message: string; type: string; param: string | null; code: number };
}

/** The wire form. `error.code` is the HTTP status, as vLLM has it. */
export function errorEnvelope(error: ServiceError): ErrorEnvelope {
  const { status, type } = error.row;
  return { error: { message: error.message, type, param: error.param, code: status } };
}

/** Anything thrown → something safe to show. Unknown errors keep their text out of the answer. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  return new ServiceError("internal_error", "Internal server error", { cause: thrown });
}
