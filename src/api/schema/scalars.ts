// Reads numbers, integers and booleans, leniently or strictly. Lenient follows pydantic: "0.5" is a number, 5.0 an
// integer, "yes" a boolean. Strict accepts only numbers, and true and false as numbers.
// Lenient 64-bit fields (format int64) become bigint to keep their bounds exact.

export interface Bounds {
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  format?: string;
}

/** Records a violation of the value being read. */
export type Fail = (type: string, msg: string) => undefined;

export interface Scalars {
  boolean(value: unknown, fail: Fail): boolean | undefined;
  number(value: unknown, bounds: Bounds, fail: Fail): number | undefined;
  integer(value: unknown, bounds: Bounds, fail: Fail): number | bigint | undefined;
}

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
/** JavaScript clients print the 64-bit limits as the nearest double, so that double is read as the limit. */
const PRINTED_LIMIT = 9223372036854776000n;

const TRUE_WORDS = new Set(["true", "t", "yes", "y", "on", "1"]);
const FALSE_WORDS = new Set(["false", "f", "no", "n", "off", "0"]);
const INTEGER_TEXT = /^\s*([+-]?\d{1,40})(\.0*)?\s*$/;
const NUMBER_TEXT = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/;
const LONGEST_NUMBER_TEXT = 400;

const NO_BOOLEAN = "Input should be a valid boolean";
const NO_INTEGER = "Input should be a valid integer";

export const STRICT: Scalars = {
  boolean: (value, fail) => (typeof value === "boolean" ? value : fail("bool_type", NO_BOOLEAN)),
  number(value, bounds, fail) {
    if (typeof value !== "number" && typeof value !== "boolean") return noNumber(fail);
    return finite(Number(value), bounds, fail);
  },
  integer(value, bounds, fail) {
    return Number.isSafeInteger(value) ? within(value as number, bounds, fail) : fail("int_type", NO_INTEGER);
  },
};

export const LENIENT: Scalars = {
  boolean(value, fail) {
    if (typeof value === "boolean") return value;
    if (value === 0 || value === 1) return value === 1;
    if (typeof value !== "string") return fail("bool_type", NO_BOOLEAN);
    const word = value.toLowerCase();
    if (TRUE_WORDS.has(word)) return true;
    return FALSE_WORDS.has(word) ? false : fail("bool_parsing", `${NO_BOOLEAN}, unable to interpret input`);
  },
  number(value, bounds, fail) {
    if (typeof value === "string") {
      if (value.length > LONGEST_NUMBER_TEXT || !NUMBER_TEXT.test(value)) {
        return fail("float_parsing", "Input should be a valid number, unable to parse string as a number");
      }
    } else if (typeof value !== "number" && typeof value !== "boolean" && typeof value !== "bigint") {
      return noNumber(fail);
    }
    return finite(Number(value), bounds, fail);
  },
  integer(value, bounds, fail) {
    const is64 = bounds.format === "int64";
    // long lists of ids take this path
    if (typeof value === "number" && Number.isSafeInteger(value) && !is64) return within(value, bounds, fail);
    const integer = exactInteger(value, fail);
    if (integer === undefined) return undefined;
    if (!is64) return within(Number(integer), bounds, fail);
    const clamped = integer === PRINTED_LIMIT ? INT64_MAX : integer === -PRINTED_LIMIT ? INT64_MIN : integer;
    const isTight = bounds.minimum !== undefined && bounds.minimum > -(2 ** 63);
    return within(clamped, { minimum: isTight ? BigInt(bounds.minimum!) : INT64_MIN, maximum: INT64_MAX }, fail);
  },
};

function exactInteger(value: unknown, fail: Fail): bigint | undefined {
  switch (typeof value) {
    case "bigint":
      return value;
    case "boolean":
      return value ? 1n : 0n;
    case "number":
      if (!Number.isFinite(value)) return notFinite(fail);
      return Number.isInteger(value)
        ? BigInt(value)
        : fail("int_from_float", `${NO_INTEGER}, got a number with a fractional part`);
    case "string": {
      const match = INTEGER_TEXT.exec(value);
      return match === null
        ? fail("int_parsing", `${NO_INTEGER}, unable to parse string as an integer`)
        : BigInt(match[1]!.replace("+", ""));
    }
    default:
      return fail("int_type", NO_INTEGER);
  }
}

function finite(value: number, bounds: Bounds, fail: Fail): number | undefined {
  return Number.isFinite(value) ? within(value, bounds, fail) : notFinite(fail);
}

function within<N extends number | bigint>(
  value: N,
  { minimum, maximum, exclusiveMinimum }: { minimum?: N; maximum?: N; exclusiveMinimum?: N },
  fail: Fail,
): N | undefined {
  if (minimum !== undefined && value < minimum) {
    return fail("greater_than_equal", `Input should be greater than or equal to ${minimum}`);
  }
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
    return fail("greater_than", `Input should be greater than ${exclusiveMinimum}`);
  }
  if (maximum !== undefined && value > maximum) {
    return fail("less_than_equal", `Input should be less than or equal to ${maximum}`);
  }
  return value;
}

function noNumber(fail: Fail): undefined {
  return fail("float_type", "Input should be a valid number");
}

function notFinite(fail: Fail): undefined {
  return fail("finite_number", "Input should be a finite number");
}

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
