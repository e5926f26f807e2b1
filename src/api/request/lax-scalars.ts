// Lenient scalars, pydantic's way: which strings count as numbers and booleans, and how bounds are reported.
// 64-bit fields (format int64) become bigint so that their exact bounds hold.

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
/** How a JavaScript client spells the 64-bit limits: the nearest double, printed. Taken as the limit itself. */
const PRINTED_LIMIT = 9223372036854776000n;

interface Bounds {
  minimum?: number;
  maximum?: number;
  format?: string;
}

type Fail = (kind: string, text: string) => undefined;

const TRUE_WORDS = new Set(["true", "t", "yes", "y", "on", "1"]);
const FALSE_WORDS = new Set(["false", "f", "no", "n", "off", "0"]);
const INTEGER_TEXT = /^\s*([+-]?\d{1,40})(\.0*)?\s*$/;
const NUMBER_TEXT = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/;
const LONGEST_NUMBER_TEXT = 400;

export function laxBoolean(value: unknown, fail: Fail): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === 0 || value === 1) return value === 1;
  if (typeof value === "string") {
    const word = value.toLowerCase();
    if (TRUE_WORDS.has(word)) return true;
    return FALSE_WORDS.has(word)
      ? false
      : fail("bool_parsing", "Input should be a valid boolean, unable to interpret input");
  }
  return fail("bool_type", "Input should be a valid boolean");
}

export function laxNumber(value: unknown, bounds: Bounds, fail: Fail): number | undefined {
  let number: number;
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") {
    number = Number(value);
  } else if (typeof value === "string") {
    if (value.length > LONGEST_NUMBER_TEXT || !NUMBER_TEXT.test(value)) {
      return fail("float_parsing", "Input should be a valid number, unable to parse string as a number");
    }
    number = Number(value);
  } else {
    return fail("float_type", "Input should be a valid number");
  }
  if (!Number.isFinite(number)) return fail("finite_number", "Input should be a finite number");
  return withinBounds(number, bounds.minimum, bounds.maximum, fail);
}

export function laxInteger(value: unknown, bounds: Bounds, fail: Fail): number | bigint | undefined {
  if (typeof value === "number" && Number.isSafeInteger(value) && bounds.format !== "int64") {
    return withinBounds(value, bounds.minimum, bounds.maximum, fail); // long id lists take this path
  }
  const integer = exactInteger(value, fail);
  if (integer === undefined) return undefined;
  if (bounds.format !== "int64") return withinBounds(Number(integer), bounds.minimum, bounds.maximum, fail);
  const clamped = integer === PRINTED_LIMIT ? INT64_MAX : integer === -PRINTED_LIMIT ? INT64_MIN : integer;
  const tightMinimum = bounds.minimum !== undefined && bounds.minimum > -(2 ** 63);
  return withinBounds(clamped, tightMinimum ? BigInt(bounds.minimum!) : INT64_MIN, INT64_MAX, fail);
}

function exactInteger(value: unknown, fail: Fail): bigint | undefined {
  switch (typeof value) {
    case "bigint":
      return value;
    case "boolean":
      return value ? 1n : 0n;
    case "number":
      if (!Number.isFinite(value)) return fail("finite_number", "Input should be a finite number");
      return Number.isInteger(value)
        ? BigInt(value)
        : fail("int_from_float", "Input should be a valid integer, got a number with a fractional part");
    case "string": {
      const match = INTEGER_TEXT.exec(value);
      return match === null
        ? fail("int_parsing", "Input should be a valid integer, unable to parse string as an integer")
        : BigInt(match[1]!.replace("+", ""));
    }
    default:
      return fail("int_type", "Input should be a valid integer");
  }
}

function withinBounds<N extends number | bigint>(
  value: N,
  minimum: N | undefined,
  maximum: N | undefined,
  fail: Fail,
): N | undefined {
  if (minimum !== undefined && value < minimum) {
    return fail("greater_than_equal", `Input should be greater than or equal to ${minimum}`);
  }
  if (maximum !== undefined && value > maximum) {
    return fail("less_than_equal", `Input should be less than or equal to ${maximum}`);
  }
  return value;
}
