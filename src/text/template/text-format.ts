// Python's two ways to fill values into a text: "%s" % values and "{}".format(values).

import type { TemplateValue } from "./library.ts";
import { pythonRepr, pythonStr } from "./python-format.ts";
import { characterCount, checkLength } from "./text-functions.ts";
import type { CallArguments } from "./values.ts";

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

/** `values`: a tuple fills one directive with each element, an object fills "%(key)s", anything else fills one. */
export function percentFormat(text: string, values: TemplateValue, maxText: number): string {
  const list = values.type === "TupleValue" ? (values.value as TemplateValue[]) : [values];
  const filled = fillDirectives(text, list, values.value instanceof Map ? values.value : null, maxText);
  if (filled.used < list.length && !(values.value instanceof Map)) throw new Error("% has values left over");
  return filled.text;
}

export function printf(text: string, { positional, named }: CallArguments, maxText: number): string {
  return fillDirectives(text, positional, named, maxText).text;
}

function fillDirectives(
  text: string,
  values: readonly TemplateValue[],
  named: ReadonlyMap<unknown, TemplateValue> | null,
  maxText: number,
): { text: string; used: number } {
  let used = 0;
  let length = text.length;
  const filled = text.replace(
    /%(?:\(([^()]*)\))?([-+ 0]*)(\d*)(?:\.(\d+))?(.?)/gs,
    (directive, key: string | undefined, flags: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === "%") return "%";
      const value = key === undefined ? values[used++] : named?.get(key);
      if (value === undefined || !/^[srdifxXeg]$/.test(kind)) throw new Error(`nothing can fill in ${directive}`);
      const isNumber = !"sr".includes(kind);
      const layout: Layout = {
        fill: flags.includes("0") && isNumber && !flags.includes("-") ? "0" : " ",
        align: flags.includes("-") ? "<" : flags.includes("0") && isNumber ? "=" : ">",
        sign: flags.includes("+") ? "+" : flags.includes(" ") ? " " : "-",
        width: Number(width),
        grouping: "",
        precision: precision === undefined ? null : Number(precision),
        kind: kind === "i" ? "d" : kind,
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
    const parts = /^(\w*)((?:\[[^\]]*\])*)(?:!([rs]))?(?::(.*))?$/s.exec(field);
    if (!parts) throw new Error(`format() cannot fill in ${match}`);
    const [, name, path, conversion, specification] = parts;
    let value = name === "" ? positional[next++] : /^\d+$/.test(name!) ? positional[Number(name)] : named.get(name!);
    for (const [, key] of path!.matchAll(/\[([^\]]*)\]/g)) value = elementOf(value, key!);
    if (value === undefined) throw new Error(`format() has nothing to put in the place of ${match}`);
    const layout = parseLayout(specification ?? "", value);
    const inserted = write(value, conversion === "r" ? { ...layout, kind: "r" } : layout, maxText);
    length += inserted.length;
    checkLength(length, maxText);
    return inserted;
  });
}

function elementOf(value: TemplateValue | undefined, key: string): TemplateValue | undefined {
  if (Array.isArray(value?.value)) return (value.value as TemplateValue[])[Number(key)];
  return value?.value instanceof Map ? value.value.get(/^\d+$/.test(key) ? Number(key) : key) : undefined;
}

function parseLayout(specification: string, value: TemplateValue): Layout {
  const parts = /^(?:(.)?([<>^=]))?([-+ ])?(0)?(\d*)([,_])?(?:\.(\d+))?([sdfFxXeg%])?$/su.exec(specification);
  if (!parts) throw new Error(`format() does not know the layout '${specification}'`);
  const [, fill, align, sign, zero, width, grouping, precision, kind] = parts;
  const isNumber = value.type === "IntegerValue" || value.type === "FloatValue";
  return {
    fill: fill ?? (zero ? "0" : " "),
    align: align ?? (zero ? "=" : isNumber ? ">" : "<"),
    sign: sign ?? "-",
    width: Number(width),
    grouping: grouping ?? "",
    precision: precision === undefined ? null : Number(precision),
    kind: kind ?? "",
  };
}

function write(value: TemplateValue, layout: Layout, maxText: number): string {
  checkLength(layout.width, maxText);
  const [sign, body] = isText(value, layout.kind) ? ["", words(value, layout)] : digits(value, layout);
  const missing = Math.max(0, layout.width - characterCount(sign + body));
  if (layout.align === "=") return sign + layout.fill.repeat(missing) + body;
  if (layout.align === "<") return sign + body + layout.fill.repeat(missing);
  const before = layout.align === "^" ? Math.floor(missing / 2) : missing;
  return layout.fill.repeat(before) + sign + body + layout.fill.repeat(missing - before);
}

function isText(value: TemplateValue, kind: string): boolean {
  return (
    kind === "s" || kind === "r" || (kind === "" && !(value.type === "IntegerValue" || value.type === "FloatValue"))
  );
}

function words(value: TemplateValue, { kind, precision }: Layout): string {
  const text = kind === "r" ? pythonRepr(value) : pythonStr(value);
  return precision === null ? text : Array.from(text).slice(0, precision).join("");
}

function digits(value: TemplateValue, layout: Layout): [sign: string, body: string] {
  const number = Number(value.value);
  if (!["IntegerValue", "FloatValue", "BooleanValue"].includes(value.type)) {
    throw new Error(`a ${value.type} cannot be written as a number`);
  }
  if ((layout.precision ?? 0) > 100) throw new Error("a number has at most 100 digits after its point");
  const negative = number < 0 || Object.is(number, -0);
  const sign = negative ? "-" : layout.sign === "-" ? "" : layout.sign;
  const body = magnitude(value, Math.abs(number), layout);
  if (layout.grouping === "") return [sign, body];
  return [sign, body.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, layout.grouping))];
}

function magnitude(value: TemplateValue, number: number, { kind, precision }: Layout): string {
  switch (kind) {
    case "f":
    case "F":
      return number.toFixed(precision ?? 6);
    case "%":
      return `${(number * 100).toFixed(precision ?? 6)}%`;
    case "e":
      return number.toExponential(precision ?? 6).replace(/e([+-])(\d)$/, "e$10$2");
    case "x":
      return Math.trunc(number).toString(16);
    case "X":
      return Math.trunc(number).toString(16).toUpperCase();
    case "g":
      return String(Number(number.toPrecision(Math.max(1, precision ?? 6))));
    case "d":
      return pythonStr(value).replace(/^-/, "").replace(/\..*$/, "");
    default:
      return precision === null
        ? pythonStr(value).replace(/^-/, "")
        : String(Number(number.toPrecision(precision || 1)));
  }
}
