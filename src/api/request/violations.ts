// Violations found in a request. Each has the path of the value and pydantic's error type, because clients look for
// those types.

export type Loc = readonly (string | number)[];

export interface Violation {
  loc: Loc;
  msg: string;
  /** pydantic's error type, for example `less_than_equal`. */
  type: string;
  /** The offending value, if small. */
  input?: unknown;
}

const LONGEST_INPUT = 200;

/** Keeps the first `max` violations, enough to repair a request. */
export class Violations {
  readonly list: Violation[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Further violations are dropped, so readers may stop. */
  get full(): boolean {
    return this.list.length >= this.#max;
  }

  get any(): boolean {
    return this.list.length > 0;
  }

  add(loc: Loc, type: string, msg: string, input?: unknown): void {
    if (!this.full) this.list.push(violation(loc, type, msg, input));
  }

  /** Adds the violations of a failed attempt. */
  take(other: Violations | undefined): void {
    this.list.push(...(other?.list ?? []).slice(0, this.#max - this.list.length));
  }
}

export function violation(loc: Loc, type: string, msg: string, input?: unknown): Violation {
  const isSmall = input === null || ["string", "number", "boolean"].includes(typeof input);
  if (!isSmall) return { loc, msg, type };
  return { loc, msg, type, input: typeof input === "string" ? input.slice(0, LONGEST_INPUT) : input };
}
