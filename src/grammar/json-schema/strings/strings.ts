// String schemas: length, pattern and format, over the decoded text.

import { complementDfa, intersectDfas, otherThan, withLength } from "../../char-dfa.ts";
import { determinise } from "../../determinise.ts";
import { type CharDfa, type Expression, isNever, never, repeat } from "../../expression.ts";
import { GrammarError } from "../../grammar-error.ts";
import { jsonEncoded } from "../../json-encoded.ts";
import { parseRegex } from "../../syntax/regex.ts";
import type { SchemaContext } from "../context.ts";
import type { JsonText } from "../json-text.ts";
import { schemaError } from "../keywords.ts";
import type { Conjunction } from "../logic/conjunction.ts";
import { formatPattern, isImplied, isKnownFormat, plainerForms } from "./formats.ts";
import { withBounds } from "./lengths.ts";

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
