// Training's dialect of errors: one 422 that lists every problem with its path, in the form FastAPI clients know.

import { ServiceError } from "../../errors/service-error.ts";
import type { Dialect } from "../request/reader.ts";
import { STRICT } from "../request/scalars.ts";
import { type Loc, type Violation, Violations, violation } from "../request/violations.ts";

export type { Loc };

/** Numbers are numbers, and null means "not given". */
export const TRAINING: Dialect = { scalars: STRICT, nullIsAbsent: true, maxViolations: 100 };

export class ValidationError extends ServiceError {
  readonly issues: readonly Violation[];

  constructor(issues: readonly Violation[]) {
    const [first] = issues;
    const where = first ? first.loc.join(".") : "body";
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
    super("invalid_training_request", `${where}: ${first?.msg ?? "invalid"}${more}`, { param: where });
    this.issues = issues;
  }
}

export class Issues extends Violations {
  constructor() {
    super(TRAINING.maxViolations);
  }

  throwIfAny(): void {
    if (this.any) throw new ValidationError(this.list);
  }
}

/** A single problem. */
export function invalid(loc: Loc, type: string, msg: string, input?: unknown): ValidationError {
  return new ValidationError([violation(loc, type, msg, input)]);
}
