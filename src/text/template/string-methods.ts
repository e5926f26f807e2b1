// Methods of strings where the library has none or only half: strip with a set of characters, replace with its growth
// checked, format, capitals as Python sets them. All other methods are the library's.

import type { CallArguments } from "./filters.ts";
import type { TemplateValue } from "./library.ts";
import { pythonStr } from "./python-format.ts";
import { capitalise, checkLength, replace, strip } from "./text-functions.ts";
import { textOf } from "./values.ts";

const sides = { strip: "both", lstrip: "left", rstrip: "right" } as const;

const replaced = new Set(["replace", "format", "capitalize", "title", ...Object.keys(sides)]);

export function isReplacedMethod(name: string): boolean {
  return replaced.has(name);
}

export function callStringMethod(name: string, text: string, args: CallArguments, maxText: number): TemplateValue {
  const { positional, named } = args;
  if (name === "format") return textOf(format(text, args, maxText));
  if (name === "capitalize") return textOf(capitalise(text));
  if (name === "title") return textOf(text.replace(/\p{L}+/gu, capitalise));
  if (name === "replace") {
    const [from, to] = [positional[0], positional[1]];
    if (from?.type !== "StringValue" || to?.type !== "StringValue") throw new Error("replace() needs two strings");
    const count = positional[2] ?? named.get("count");
    const limit = count?.type === "IntegerValue" ? (count.value as number) : -1;
    return textOf(replace(text, from.value as string, to.value as string, limit, maxText));
  }
  const characters = positional[0]?.type === "StringValue" ? (positional[0].value as string) : null;
  return textOf(strip(text, sides[name as keyof typeof sides], characters));
}

/** Fields by order, number or name; no attributes, conversions or format specifications. */
function format(text: string, { positional, named }: CallArguments, maxText: number): string {
  let next = 0;
  let length = text.length;
  return text.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (match, field: string | undefined) => {
    if (field === undefined) return match[0]!;
    const value =
      field === "" ? positional[next++] : /^\d+$/.test(field) ? positional[Number(field)] : named.get(field);
    if (value === undefined) throw new Error(`format() has nothing to put in the place of ${match}`);
    const inserted = pythonStr(value);
    length += inserted.length;
    checkLength(length, maxText);
    return inserted;
  });
}
