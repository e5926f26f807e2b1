// String schemas: length, pattern and format, over the decoded text.

import { determinise, intersectDfas, otherThan, withLength } from "../char-dfa.ts";
import { ESCAPED_IN_JSON, intersectSets, subtractSets } from "../code-points.ts";
import { type CharDfa, charSet, choice, type Expression, repeat, sequence, texts } from "../expression.ts";
import { GrammarError } from "../grammar-error.ts";
import { parseRegex } from "../syntax/regex.ts";
import { formatPattern, isFreeFormat, isImplied, isPatternName, knownFormats, shortPatterns } from "./formats.ts";
import type { JsonText } from "./json-text.ts";
import { type SchemaObject, schemaError } from "./keywords.ts";

/** Longer strings are never generated where a maximum is given; a minimum beyond it is refused. */
const MAX_COUNTED = 20_000;

export function compileString(json: JsonText, schema: SchemaObject, path: string): Expression {
  const [min, max] = lengthBounds(schema, path);
  const patterns = stringPatterns(schema, path);
  if (patterns.length === 0) {
    if (min === 0 && max === null) return json.string;
    return json.quoted(repeat(json.character, min, max));
  }
  const fits = (pattern: Expression): boolean => {
    const [shortest, longest] = lengthRange(pattern);
    return shortest >= min && (max === null || longest <= max);
  };
  if (patterns.length === 1) {
    const narrower = schema.pattern === undefined ? shortPatterns(String(schema.format)) : [];
    const fitting = [...patterns, ...narrower.map((source) => parseRegex(source, "full"))].find(fits);
    if (fitting !== undefined) return json.quoted(jsonEncoded(fitting));
  }
  return json.quoted({ kind: "dfa", dfa: stringDfa(schema, null, path), json: true });
}

/** Decoded texts that the string keywords allow, of those in `among` (null: of all). */
export function stringDfa(schema: SchemaObject, among: CharDfa | null, path: string): CharDfa {
  const [min, max] = lengthBounds(schema, path);
  const subject = `the combination of string keywords at ${path}`;
  let dfa = among;
  for (const pattern of stringPatterns(schema, path)) {
    const next = determinise(pattern, subject);
    dfa = dfa === null ? next : intersectDfas(dfa, next, subject);
  }
  dfa ??= otherThan([]);
  return min > 0 || max !== null ? withLength(dfa, min, max, subject) : dfa;
}

function lengthBounds(schema: SchemaObject, path: string): [min: number, max: number | null] {
  const min = (schema.minLength ?? 0) as number;
  const max = (schema.maxLength ?? null) as number | null;
  if (min > MAX_COUNTED) throw schemaError(`the schema keyword "minLength" is supported up to ${MAX_COUNTED}`, path);
  if (max !== null && max < min) throw schemaError('"maxLength" is less than "minLength"', path);
  return [min, max === null ? null : Math.min(max, MAX_COUNTED)];
}

/** Decoded-text languages of `pattern` and `format`. */
export function stringPatterns(schema: SchemaObject, path: string): Expression[] {
  const format = schema.format as string | undefined;
  const sources = ((schema.pattern === undefined ? [] : [schema.pattern].flat()) as string[]).filter(
    (source) => format === undefined || !isImplied(source, format),
  );
  const patterns = sources.map((source) => searchPattern(source, path));
  if (format === undefined || isFreeFormat(format) || (sources.length > 0 && isPatternName(format))) return patterns;
  const pattern = formatPattern(format);
  if (pattern === null) {
    const name = JSON.stringify(format.slice(0, 40));
    throw schemaError(
      `the schema keyword "format" with ${name} is not supported (known: ${knownFormats().join(", ")})`,
      path,
    );
  }
  return [...patterns, parseRegex(pattern, "full")];
}

function searchPattern(source: string, path: string): Expression {
  try {
    return parseRegex(source, "search");
  } catch (error) {
    if (error instanceof GrammarError) throw schemaError(`the schema keyword "pattern": ${error.message}`, path);
    throw error;
  }
}

/** The same texts as they are written inside a JSON string, with the fewest escapes. */
function jsonEncoded(expression: Expression): Expression {
  switch (expression.kind) {
    case "set": {
      const special = intersectSets(expression.set, ESCAPED_IN_JSON);
      const raw = charSet(subtractSets(expression.set, ESCAPED_IN_JSON));
      if (special.length === 0) return raw;
      const escapes: string[] = [];
      for (const [low, high] of special) {
        for (let point = low; point <= high; point++)
          escapes.push(JSON.stringify(String.fromCodePoint(point)).slice(1, -1));
      }
      return choice(raw, texts(escapes));
    }
    case "texts":
      return texts(expression.texts.map((value) => JSON.stringify(value).slice(1, -1)));
    case "sequence":
      return sequence(...expression.parts.map(jsonEncoded));
    case "choice":
      return choice(...expression.options.map(jsonEncoded));
    case "repeat":
      return repeat(jsonEncoded(expression.body), expression.min, expression.max);
    case "dfa":
      return { ...expression, json: true };
    default:
      throw new Error(`${expression.kind} has no JSON form`);
  }
}

/** Shortest and longest text in characters. */
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
