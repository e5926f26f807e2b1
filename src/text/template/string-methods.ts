// The methods of strings, as Python has them: positions and lengths count characters, growth is checked before it happens.

import { argument, integerOrNull, textOrNull } from "./arguments.ts";
import type { TemplateValue } from "./library.ts";
import { braceFormat } from "./text-format.ts";
import {
  capitalise,
  characterCount,
  join,
  pad,
  replace,
  splitLines,
  splitText,
  splitWords,
  strip,
} from "./text-functions.ts";
import { booleanOf, type CallArguments, integerOf, keyValue, listOf, textOf, tupleOf } from "./values.ts";

type StringMethod = (text: string, args: CallArguments, maxText: number) => TemplateValue;

const methods: Readonly<Record<string, StringMethod>> = {
  upper: (text) => textOf(text.toUpperCase()),
  lower: (text) => textOf(text.toLowerCase()),
  casefold: (text) => textOf(text.toLowerCase().replaceAll("ß", "ss")),
  capitalize: (text) => textOf(capitalise(text)),
  title: (text) => textOf(text.replace(/\p{L}+/gu, capitalise)),
  swapcase: (text) => textOf(text.replace(/./gsu, (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()))),
  strip: (text, args) => textOf(strip(text, "both", textOrNull(argument(args, 0, "chars")))),
  lstrip: (text, args) => textOf(strip(text, "left", textOrNull(argument(args, 0, "chars")))),
  rstrip: (text, args) => textOf(strip(text, "right", textOrNull(argument(args, 0, "chars")))),
  removeprefix: (text, args) => textOf(text.startsWith(needed(args)) ? text.slice(needed(args).length) : text),
  removesuffix: (text, args) =>
    textOf(text.endsWith(needed(args)) ? text.slice(0, text.length - needed(args).length) : text),
  replace(text, args, maxText) {
    const count = integerOrNull(argument(args, 2, "count")) ?? -1;
    return textOf(replace(text, needed(args, 0), needed(args, 1), count, maxText));
  },
  format: (text, args, maxText) => textOf(braceFormat(text, args, maxText)),
  join(text, { positional }, maxText) {
    const { value } = positional[0] ?? { value: null };
    const parts =
      typeof value === "string"
        ? Array.from(value, textOf)
        : value instanceof Map
          ? Array.from(value.keys(), keyValue)
          : value;
    if (!Array.isArray(parts)) throw new Error("join() needs a list of strings");
    const texts = (parts as TemplateValue[]).map((part) => {
      if (part.type !== "StringValue") throw new Error(`join() cannot join a ${part.type}`);
      return part.value as string;
    });
    return textOf(join(texts, text, maxText));
  },
  split: (text, args) => texts(splitWith(text, args, false)),
  rsplit: (text, args) => texts(splitWith(text, args, true)),
  splitlines: (text, { positional, named }) =>
    texts(splitLines(text, (positional[0] ?? named.get("keepends"))?.__bool__().value ?? false)),
  partition(text, args) {
    const [before, ...after] = splitText(text, needed(args), 1, false);
    return tupleOf([before!, after.length > 0 ? needed(args) : "", after[0] ?? ""].map(textOf));
  },
  rpartition(text, args) {
    const parts = splitText(text, needed(args), 1, true);
    return tupleOf((parts.length > 1 ? [parts[0]!, needed(args), parts[1]!] : ["", "", text]).map(textOf));
  },
  find: (text, args) => integerOf(position(text, args, "first")),
  rfind: (text, args) => integerOf(position(text, args, "last")),
  index: (text, args) => integerOf(found(position(text, args, "first"))),
  rindex: (text, args) => integerOf(found(position(text, args, "last"))),
  count(text, args) {
    const part = needed(args);
    const within = range(text, args).text;
    return integerOf(part === "" ? characterCount(within) + 1 : within.split(part).length - 1);
  },
  startswith: (text, args) => booleanOf(alternatives(args).some((start) => range(text, args).text.startsWith(start))),
  endswith: (text, args) => booleanOf(alternatives(args).some((end) => range(text, args).text.endsWith(end))),
  isdigit: (text) => booleanOf(/^[\p{Nd}²³¹⁰-⁹₀-₉]+$/u.test(text)),
  isdecimal: (text) => booleanOf(/^\p{Nd}+$/u.test(text)),
  isnumeric: (text) => booleanOf(/^\p{N}+$/u.test(text)),
  isalpha: (text) => booleanOf(/^\p{L}+$/u.test(text)),
  isalnum: (text) => booleanOf(/^[\p{L}\p{N}]+$/u.test(text)),
  isspace: (text) => booleanOf(text !== "" && strip(text, "left", null) === ""),
  isupper: (text) => booleanOf(text !== text.toLowerCase() && text === text.toUpperCase()),
  islower: (text) => booleanOf(text !== text.toUpperCase() && text === text.toLowerCase()),
  zfill(text, args, maxText) {
    const sign = /^[+-]/.exec(text)?.[0] ?? "";
    return textOf(
      sign +
        pad(text.slice(sign.length), (integerOrNull(argument(args, 0, "width")) ?? 0) - sign.length, "0", 1, maxText),
    );
  },
  ljust: (text, args, maxText) => textOf(pad(text, width(args), fill(args), 0, maxText)),
  rjust: (text, args, maxText) => textOf(pad(text, width(args), fill(args), 1, maxText)),
  center: (text, args, maxText) => textOf(pad(text, width(args), fill(args), 0.5, maxText)),
};

export function callStringMethod(name: string, text: string, args: CallArguments, maxText: number): TemplateValue {
  const method = Object.hasOwn(methods, name) ? methods[name]! : null;
  if (method === null) throw new Error(`a string has no method '${name}'`);
  return method(text, args, maxText);
}

const texts = (parts: readonly string[]): TemplateValue => listOf(parts.map(textOf));

function splitWith(text: string, args: CallArguments, fromRight: boolean): string[] {
  const separator = textOrNull(argument(args, 0, "sep"));
  const limit = integerOrNull(argument(args, 1, "maxsplit")) ?? -1;
  return separator === null ? splitWords(text, limit, fromRight) : splitText(text, separator, limit, fromRight);
}

/** The part of the text that the optional arguments `start` and `end` name, and how many characters come before it. */
function range(text: string, args: CallArguments): { text: string; from: number } {
  const [start, end] = [integerOrNull(argument(args, 1, "start")), integerOrNull(argument(args, 2, "end"))];
  if (start === null && end === null) return { text, from: 0 };
  const letters = Array.from(text);
  const from = start === null ? 0 : start < 0 ? Math.max(0, letters.length + start) : start;
  return { text: letters.slice(from, end ?? letters.length).join(""), from };
}

function position(text: string, args: CallArguments, which: "first" | "last"): number {
  const within = range(text, args);
  const part = needed(args);
  const at = which === "first" ? within.text.indexOf(part) : within.text.lastIndexOf(part);
  return at < 0 ? -1 : within.from + characterCount(within.text.slice(0, at));
}

function found(at: number): number {
  if (at < 0) throw new Error("substring not found");
  return at;
}

function alternatives(args: CallArguments): string[] {
  const first = args.positional[0];
  if (first?.type !== "TupleValue") return [needed(args)];
  return (first.value as TemplateValue[]).map((_, i, all) =>
    needed({ positional: all as TemplateValue[], named: new Map() }, i),
  );
}

const width = (args: CallArguments): number => integerOrNull(argument(args, 0, "width")) ?? 0;
const fill = (args: CallArguments): string => textOrNull(argument(args, 1, "fillchar")) ?? " ";

function needed({ positional }: CallArguments, at = 0): string {
  const value = positional[at];
  if (value?.type !== "StringValue")
    throw new Error(`a string is needed, not ${value ? `a ${value.type}` : "nothing"}`);
  return value.value as string;
}
