// String schemas: length, pattern and format, over the decoded text.

import { complementDfa, intersectDfas, otherThan, withLength } from "../../char-dfa.ts";
import { determinise } from "../../determinise.ts";
import { type CharDfa, type Expression, isNever, never, repeat, sequence } from "../../expression.ts";
import { GrammarError } from "../../grammar-error.ts";
import { jsonEncoded } from "../../json-encoded.ts";
import { parseRegex } from "../../syntax/regex.ts";
import type { SchemaContext } from "../context.ts";
import type { JsonText } from "../json-text.ts";
import { schemaError } from "../keywords.ts";
import type { Conjunction } from "../logic/conjunction.ts";
import { formatPattern, isImplied, isKnownFormat, plainerForms } from "./formats.ts";

// Text lengths of an expression in characters, and expressions limited to a range of lengths where that needs no
// automaton.

/** Maxima from here on are kept less exactly, because an automaton of that length would be too large. */
const LARGE = 1_000;
const MAX_SPREAD = 16;

/** The texts that are min to max characters long; null if that needs an automaton. */
function withBounds(expression: Expression, min: number, max: number | null): Expression | null {
  const [shortest, longest] = lengthRange(expression);
  if (shortest >= min && (max === null || longest <= max)) return expression;
  const parts = expression.kind === "sequence" ? expression.parts : [expression];
  const at = parts.findIndex((each) => each.kind === "repeat" && each.body.kind === "set" && !hasFixedLength(each));
  const part = parts[at];
  if (part?.kind !== "repeat") return null;
  // By index: the same expression may occur twice.
  const others = parts.filter((_, index) => index !== at).map(lengthRange);
  const least = others.reduce((sum, [low]) => sum + low, 0);
  const most = others.reduce((sum, [, high]) => sum + high, 0);
  // Texts near a large maximum are left out if the other parts vary a little in length.
  if (most > least + (max !== null && max >= LARGE ? MAX_SPREAD : 0)) return null;
  const from = Math.max(part.min, min - least);
  const to = max === null ? part.max : Math.min(part.max ?? max, max - most);
  if (to !== null && to < from) return null;
  return sequence(...parts.map((each, index) => (index === at ? repeat(part.body, from, to) : each)));
}

function hasFixedLength(expression: Expression): boolean {
  const [shortest, longest] = lengthRange(expression);
  return shortest === longest;
}

/** Lengths of the shortest and longest text, in characters. */
function lengthRange(expression: Expression): [number, number] {
  switch (expression.kind) {
    case "set":
      return [1, 1];
    case "texts": {
      const lengths = expression.texts.map((value) => Array.from(value).length);
      return [Math.min(...lengths), Math.max(...lengths)];
    }
    case "sequence":
      return expression.parts.map(lengthRange).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    case "choice":
      return expression.options
        .map(lengthRange)
        .reduce(([a, b], [c, d]) => [Math.min(a, c), Math.max(b, d)], [Number.POSITIVE_INFINITY, 0]);
    case "repeat": {
      const [low, high] = lengthRange(expression.body);
      return [
        low * expression.min,
        expression.max === null ? (high === 0 ? 0 : Number.POSITIVE_INFINITY) : high * expression.max,
      ];
    }
    default:
      return [0, Number.POSITIVE_INFINITY];
  }
}

/** Caps any given maximum. A larger minimum is refused. */
const MAX_COUNTED = 20_000;

/** Maximum length of addresses that have only a minimum length. */
const LONG_ADDRESS = 2_000;

/** The demands that apply to strings. */
type StringDemands = Partial<
  Pick<Conjunction, "patterns" | "notPatterns" | "formats" | "excluded" | "minLength" | "maxLength">
>;

/** Equal demands share one rule, because many properties have the same maximum length, pattern or format. */
export function compileString(context: SchemaContext, all: Conjunction, path: string): Expression {
  const { patterns, notPatterns, formats, minLength, maxLength } = all;
  const excluded = excludedTexts(all);
  const demands = { patterns, notPatterns, formats: formats.filter(isKnownFormat), excluded, minLength, maxLength };
  if (maxLength !== null && maxLength < minLength) {
    return context.impossible('"maxLength" is less than "minLength"', path);
  }
  const key = JSON.stringify(demands);
  if (key === FREE_STRING) return context.text.string;
  const content = stringContent(context.text, demands, path);
  if (isNever(content)) return context.impossible("no string fits the schema", path);
  return context.text.builder.named(`string ${key}`, () => context.text.quoted(content));
}

const FREE_STRING = JSON.stringify({
  patterns: [],
  notPatterns: [],
  formats: [],
  excluded: [],
  minLength: 0,
  maxLength: null,
});

function stringContent(json: JsonText, demands: Required<StringDemands>, path: string): Expression {
  const [min, max] = lengthBounds(demands, path);
  const patterns = stringPatterns(demands, path);
  const apart = demands.excluded.length > 0 || demands.notPatterns.length > 0;
  if (patterns.length === 0 && !apart) return repeat(json.character, min, max);
  const only = patterns.length === 1 && !apart ? withBounds(patterns[0]!, min, max) : null;
  if (only !== null) return jsonEncoded(only);
  // An address with a length limit would be too complex. A simpler form that fits is used instead.
  const plainer = demands.patterns.length === 0 && !apart ? plainerForms(demands.formats, max ?? LONG_ADDRESS) : [];
  for (const source of plainer) {
    const fitting = withBounds(parseRegex(source, "full"), min, max);
    if (fitting !== null) return jsonEncoded(fitting);
  }
  const dfa = stringDfa(demands, null, path);
  return dfa.states.some((state) => state.final) ? { kind: "dfa", dfa, json: true } : never;
}

/** Decoded texts from `among` that the demands allow; null stands for all texts. */
export function stringDfa(demands: StringDemands, among: CharDfa | null, path: string): CharDfa {
  const [min, max] = lengthBounds(demands, path);
  const subject = `the combination of string keywords at ${path}`;
  const formats = (demands.formats ?? []).filter(isKnownFormat);
  const parts = ownPatterns(demands).map((source) => determinise(searchPattern(source, path), subject));
  parts.push(...formats.map(formatDfa));
  for (const pattern of demands.notPatterns ?? []) {
    parts.push(complementDfa(determinise(searchPattern(pattern, path, true), subject)));
  }
  const excluded = excludedTexts(demands);
  if (excluded.length > 0) parts.push(otherThan(excluded));
  let dfa = among;
  for (const part of parts) dfa = dfa === null ? part : intersectDfas(dfa, part, subject);
  dfa ??= otherThan([]);
  return min > 0 || max !== null ? withLength(dfa, min, max, subject) : dfa;
}

const FORMAT_DFAS = new Map<string, CharDfa>();

/** Cached, because a format's automaton is large and always the same. */
function formatDfa(format: string): CharDfa {
  let dfa = FORMAT_DFAS.get(format);
  if (!dfa) {
    dfa = determinise(parseRegex(formatPattern(format)!, "full"), `the format ${format}`);
    FORMAT_DFAS.set(format, dfa);
  }
  return dfa;
}

function excludedTexts({ excluded }: StringDemands): string[] {
  return (excluded ?? []).filter((value) => typeof value === "string");
}

function lengthBounds({ minLength, maxLength }: StringDemands, path: string): [min: number, max: number | null] {
  const min = minLength ?? 0;
  const max = maxLength ?? null;
  if (min > MAX_COUNTED) throw schemaError(`the schema keyword "minLength" is supported up to ${MAX_COUNTED}`, path);
  return [min, max === null ? null : Math.min(max, MAX_COUNTED)];
}

/** The languages of `pattern` and `format`, over the decoded text. */
export function stringPatterns({ patterns = [], formats = [] }: StringDemands, path: string): Expression[] {
  const known = formats.filter(isKnownFormat);
  return [
    ...ownPatterns({ patterns, formats }).map((source) => searchPattern(source, path)),
    ...known.map((format) => parseRegex(formatPattern(format)!, "full")),
  ];
}

/** Patterns that the formats beside them do not imply. */
function ownPatterns({ patterns, formats }: StringDemands): string[] {
  return (patterns ?? []).filter((source) => !(formats ?? []).some((format) => isImplied(source, format)));
}

function searchPattern(source: string, path: string, wide = false): Expression {
  try {
    return parseRegex(source, "search", wide);
  } catch (error) {
    if (error instanceof GrammarError) throw schemaError(`the schema keyword "pattern": ${error.message}`, path);
    throw error;
  }
}
