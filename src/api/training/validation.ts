// Reads requests in the training dialect. One 422 lists every problem with its path, in FastAPI's form.

import type { Static, TSchema } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { readValue, type ValueRules } from "../schema/reader.ts";
import { LENIENT, type Loc, STRICT, type Violation, Violations, violation } from "../schema/scalars.ts";

/** Strings are not read as numbers, and null means "not given". */
const BODY: ValueRules = { scalars: STRICT, nullIsAbsent: true, maxViolations: 100 };
/** A query has only text. */
const QUERY: ValueRules = { ...BODY, scalars: LENIENT };

/** The message lists this many problems; `detail` has all of them. */
const SHOWN = 5;

export class ValidationError extends ServiceError {
  readonly issues: readonly Violation[];

  constructor(issues: readonly Violation[]) {
    const [first, ...others] = issues.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`);
    const shown = others.slice(0, SHOWN - 1).join("; ");
    const more =
      others.length === 0 ? "" : ` (and ${others.length} more: ${shown}${others.length < SHOWN ? "" : "; …"})`;
    super("invalid_training_request", `${first}${more}`, { param: issues[0]!.loc.join(".") });
    this.issues = issues;
  }
}

/** A single problem. */
export function invalid(loc: Loc, type: string, msg: string, input?: unknown): ValidationError {
  return new ValidationError([violation(loc, type, msg, input)]);
}

export function nulInId(place: Loc): ValidationError {
  return invalid(place, "value_error", "Value error, use text without U+0000");
}

export function noIssues(): Violations {
  return new Violations(BODY.maxViolations);
}

export function throwIfAny({ any, list }: Violations): void {
  if (any) throw new ValidationError(list);
}

/** Returns undefined and adds to `issues` if there are problems. */
export function readTraining<S extends TSchema>(
  schema: S,
  value: unknown,
  issues: Violations,
  loc: Loc,
): Static<S> | undefined {
  return readValue(schema, value, BODY, issues, loc);
}

/** Reads a whole body. */
export function readSmallBody<S extends TSchema>(schema: S, body: unknown): Static<S> {
  if (body === undefined) throw invalid(["body"], "missing", "Field required");
  return readOrThrow(schema, body, BODY, "body");
}

export function readQuery<S extends TSchema>(schema: S, query: unknown): Static<S> {
  return readOrThrow(schema, query ?? {}, QUERY, "query");
}

function readOrThrow<S extends TSchema>(schema: S, value: unknown, dialect: ValueRules, place: string): Static<S> {
  const issues = noIssues();
  const read = readValue(schema, value, dialect, issues, [place]);
  throwIfAny(issues);
  return read as Static<S>;
}
