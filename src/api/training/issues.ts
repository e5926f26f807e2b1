// Problems in a training request, each with the path of the offending value, in the form FastAPI clients know:
// {loc, msg, type, input}. Collected, so that a client sees all of them at once; thrown together as one 422.

import { ServiceError } from "../../errors/service-error.ts";

export type Loc = readonly (string | number)[];

export interface Issue {
  loc: Loc;
  msg: string;
  type: string;
  input?: unknown;
}

/** More than this helps nobody. */
const MAX_ISSUES = 100;

export class ValidationError extends ServiceError {
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    const [first] = issues;
    const where = first ? first.loc.join(".") : "body";
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
    super("invalid_training_request", `${where}: ${first?.msg ?? "invalid"}${more}`, { param: where });
    this.issues = issues;
  }
}

export class Issues {
  readonly #list: Issue[] = [];

  get any(): boolean {
    return this.#list.length > 0;
  }

  get full(): boolean {
    return this.#list.length >= MAX_ISSUES;
  }

  add(loc: Loc, type: string, msg: string, input?: unknown): void {
    if (!this.full) this.#list.push(issue(loc, type, msg, input));
  }

  throwIfAny(): void {
    if (this.any) throw new ValidationError(this.#list);
  }
}

/** A single problem. */
export function invalid(loc: Loc, type: string, msg: string, input?: unknown): ValidationError {
  return new ValidationError([issue(loc, type, msg, input)]);
}

/** Values of any size may have come in; only small ones go back. */
function issue(loc: Loc, type: string, msg: string, input: unknown): Issue {
  const small = input === null || ["string", "number", "boolean"].includes(typeof input);
  if (!small) return { loc, msg, type };
  return { loc, msg, type, input: typeof input === "string" ? input.slice(0, 200) : input };
}
