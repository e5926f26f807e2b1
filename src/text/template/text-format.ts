// Python's two ways to fill values into a text: "%s" % values and "{}".format(values).

import { isNumeric, type Numeric } from "./comparison.ts";
import { fixedPoint, pythonRepr, pythonStr } from "./python-format.ts";
import { checkLength } from "./text-functions.ts";
import { type CallArguments, characters, type Dict, keyOf, positioned, Tuple, typeName, type Value } from "./values.ts";

interface Layout {
  fill: string;
  /** "<", ">", "^", or "=": between the sign and the digits. */
  align: string;
  sign: string;
  width: number;
  grouping: string;
  precision: number | null;
  kind: string;
}

/** A tuple fills one directive with each of its elements, a dict fills "%(key)s", anything else fills one directive. */
export function percentFormat(text: string, values: Value, maxText: number): string {
  const list = values instanceof Tuple ? values.items : [values];
  const named = values instanceof Map ? values : null;
  const filled = fillDirectives(text, list, named, maxText);
  if (filled.used < list.length && named === null) throw new Error("not all arguments were used by %");
  return filled.text;
}

function fillDirectives(
  text: string,
  values: readonly Value[],
  named: Dict | null,
  maxText: number,
): { text: string; used: number } {
  let used = 0;
  let length = text.length;
  const filled = text.replace(
    /%(?:\(([^()]*)\))?([-+ 0#]*)(\d*)(?:\.(\d*))?(.?)/gs,
    (directive, key: string | undefined, flags: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === "%") return "%";
      const isGiven = key === undefined ? used < values.length : named?.has(key);
      const value = key === undefined ? values[used++] : named?.get(key);
      if (!isGiven || !/^[srdiufFxXoeEgG]$/.test(kind)) throw new Error(`nothing can fill in ${directive}`);
      const zero = flags.includes("0") && !"sr".includes(kind) && !flags.includes("-");
      const layout: Layout = {
        fill: zero ? "0" : " ",
        align: flags.includes("-") ? "<" : zero ? "=" : ">",
        sign: flags.includes("+") ? "+" : flags.includes(" ") ? " " : "-",
        width: Number(width),
        grouping: "",
        precision: precision === undefined ? null : Number(precision),
        kind: "iu".includes(kind) ? "d" : kind,
      };
      const inserted = write(value, layout, maxText);
      length += inserted.length;
      checkLength(length, maxText);
      return inserted;
    },
  );
  return { text: filled, used };
}

/** Fields by order, number or name, with elements and keys of them, "!r" and "!s", and the usual layouts. */
export function braceFormat(text: string, { positional, named }: CallArguments, maxText: number): string {
  let next = 0;
  let length = text.length;
  return text.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (match, field: string | undefined) => {
    if (field === undefined && match.length === 1) throw new Error("format() met a single brace");
    if (field === undefined) return match[0]!;
    const parts = /^(\w*)((?:\[[^\]]*\]|\.\w+)*)(?:!([rs]))?(?::(.*))?$/s.exec(field);
    if (!parts) throw new Error(`format() cannot fill in ${match}`);
    const [, name, path, conversion, specification] = parts;
    const at = name === "" ? next++ : /^\d+$/.test(name!) ? Number(name) : null;
    if (at === null ? !named.has(name!) : at >= positional.length) {
      throw new Error(`format() has nothing to put in the place of ${match}`);
    }
    let value = at === null ? named.get(name!) : positional[at];
    for (const [, index, key] of path!.matchAll(/\[([^\]]*)\]|\.(\w+)/g)) value = elementOf(value, index ?? key!);
    const layout = parseLayout(specification ?? "", value);
    const inserted = write(value, conversion === "r" ? { ...layout, kind: "r" } : layout, maxText);
    length += inserted.length;
    checkLength(length, maxText);
    return inserted;
  });
}

function elementOf(value: Value, key: string): Value {
  const isNumber = /^\d+$/.test(key);
  if (value instanceof Map) return value.get(keyOf(isNumber ? BigInt(key) : key));
  return isNumber ? positioned(value)?.[Number(key)] : undefined;
}

function parseLayout(specification: string, value: Value): Layout {
  const parts = /^(?:(.)?([<>^=]))?([-+ ])?(0)?(\d*)([,_])?(?:\.(\d+))?([sdfFxXboeEgG%])?$/su.exec(specification);
  if (!parts) throw new Error(`format() does not know the layout '${specification}'`);
  if (specification !== "" && typeof value !== "string" && !isNumeric(value)) {
    throw new Error(`a '${typeName(value)}' has no layout '${specification}'`);
  }
  const [, fill, align, sign, zero, width, grouping, precision, kind] = parts;
  return {
    fill: fill ?? (zero ? "0" : " "),
    align: align ?? (zero ? "=" : isTextual(value) ? "<" : ">"),
    sign: sign ?? "-",
    width: Number(width),
    grouping: grouping ?? "",
    precision: precision === undefined ? null : Number(precision),
    kind: kind ?? "",
  };
}

/** What a layout without a kind writes as a text; a boolean prints its name. */
function isTextual(value: Value): boolean {
  return !isNumeric(value) || typeof value === "boolean";
}

function write(value: Value, layout: Layout, maxText: number): string {
  checkLength(layout.width, maxText);
  const isText = layout.kind === "s" || layout.kind === "r" || (layout.kind === "" && isTextual(value));
  const [sign, body] = isText ? ["", words(value, layout)] : digits(value, layout);
  const missing = Math.max(0, layout.width - characters(sign + body).length);
  if (layout.align === "=") return sign + layout.fill.repeat(missing) + body;
  if (layout.align === "<") return sign + body + layout.fill.repeat(missing);
  const before = layout.align === "^" ? Math.floor(missing / 2) : missing;
  return layout.fill.repeat(before) + sign + body + layout.fill.repeat(missing - before);
}

function words(value: Value, { kind, precision }: Layout): string {
  const text = kind === "r" ? pythonRepr(value) : pythonStr(value);
  return precision === null ? text : Array.from(text).slice(0, precision).join("");
}

function digits(value: Value, layout: Layout): [sign: string, body: string] {
  if (!isNumeric(value)) throw new Error(`a '${typeName(value)}' cannot be written as a number`);
  if ((layout.precision ?? 0) > 100) throw new Error("a number has at most 100 digits after its point");
  const isNegative = Number(value) < 0 || Object.is(value, -0);
  const sign = isNegative ? "-" : layout.sign === "-" ? "" : layout.sign;
  const body = magnitude(value, layout);
  if (layout.grouping === "") return [sign, body];
  return [sign, body.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, layout.grouping))];
}

const BASES: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2, d: 10 };

function magnitude(value: Numeric, { kind, precision }: Layout): string {
  const number = Math.abs(Number(value));
  const lower = kind.toLowerCase();
  const base = BASES[lower];
  const text = base === undefined ? fraction(value, number, lower, precision) : whole(value, number).toString(base);
  return kind === lower ? text : text.toUpperCase();
}

function whole(value: Numeric, number: number): bigint {
  if (typeof value === "number") return BigInt(Math.trunc(number));
  return Number(value) < 0 ? -BigInt(value) : BigInt(value);
}

function fraction(value: Numeric, number: number, kind: string, precision: number | null): string {
  if (kind === "f") return fixedPoint(number, precision ?? 6);
  if (kind === "%") return `${fixedPoint(number * 100, precision ?? 6)}%`;
  if (kind === "e") return exponential(number, precision ?? 6);
  if (kind === "g" || precision !== null) return general(number, precision ?? 6);
  return pythonStr(value).replace(/^-/, "");
}

function exponential(number: number, precision: number): string {
  return number.toExponential(precision).replace(/e([+-])(\d)$/, "e$10$2");
}

/** Positional where the exponent is small, without trailing zeros. */
function general(number: number, precision: number): string {
  const significant = Math.max(1, precision);
  const exponent = number === 0 ? 0 : Number(number.toExponential(significant - 1).split("e")[1]);
  const isPositional = exponent >= -4 && exponent < significant;
  const text = isPositional ? number.toFixed(significant - 1 - exponent) : exponential(number, significant - 1);
  return text.replace(/\.0+(?=e|$)|(\.\d*?[1-9])0+(?=e|$)/, "$1");
}
