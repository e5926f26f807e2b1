// What the errors of PostgreSQL and its driver mean for us.

import { whyNoTls } from "./postgres-tls.ts";

/** A code of five characters is the server's (SQLSTATE), another one is the operating system's. */
function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? "");
}

/** Two transactions got in each other's way. The one that failed can run again. */
export function lostRace(error: unknown): boolean {
  return ["40001", "40P01"].includes(codeOf(error));
}

/** A row with this key is there already. Run again, the transaction sees it, unless it never looks. */
export function isDuplicate(error: unknown): boolean {
  return codeOf(error) === "23505";
}

/** The server ends the connection: it shuts down, it crashed, or the transaction was idle for too long. */
const SERVER_ENDS = /^(57P0[1-5]|25P03|08...)$/;

/** The driver's own words, which have no code. */
const DRIVER_NOT_SENT = "not queryable";
const DRIVER_LOST = new RegExp(`Connection terminated|${DRIVER_NOT_SENT}|read timeout`);

/** At a start: nobody answers, or somebody else. */
const DRIVER_UNANSWERED = /Connection terminated|timeout expired|establishing an SSL connection/;

/** The connection is gone, or its server is silent. What was sent last may have been done. */
export function lostConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return SERVER_ENDS.test(code) || /^E[A-Z]+$/.test(code) || DRIVER_LOST.test(error.message);
}

/**
 * The server does not have the statement that this connection prepared, or has one that it did not: a pooler such as
 * PgBouncer gives each transaction another connection to the server. Nothing was done.
 */
export function isPooled(error: unknown): boolean {
  return ["26000", "42P05"].includes(codeOf(error));
}

/** The connection was lost before this statement. */
export function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.includes(DRIVER_NOT_SENT);
}

/** The server gave up a statement that took too long. */
export function isTooSlow(error: unknown): boolean {
  return codeOf(error) === "57014";
}

/** Why a database cannot be used, for the operator. `name`: of the database. */
export function whyUnusable(error: unknown, name: string): string {
  const noTls = whyNoTls(error);
  if (noTls !== null) return noTls;
  const message = error instanceof Error ? error.message || codeOf(error) : String(error);
  switch (codeOf(error)) {
    case "28P01":
    case "28000":
      return `${message}: check the user and the password`;
    case "3D000":
      return `it does not exist: create it with \`createdb ${name}\``;
    case "ECONNREFUSED":
    case "ENOENT":
      return `${message}: is PostgreSQL running there?`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${message}: check the host`;
    case "42501":
      return `${message}: its user must be allowed to create tables`;
    case "":
      return DRIVER_UNANSWERED.test(message)
        ? `${message}: check the host and the port: no PostgreSQL answers there`
        : message;
    default:
      return message;
  }
}
