// A lower bound for how many different values a schema's generated texts have. An array whose items must differ needs
// enough of them for its least number of items.

import type { CharDfa, Expression, GrammarBuilder } from "../../expression.ts";
import { isNever } from "../../expression.ts";
import type { SchemaContext } from "../context.ts";
import { distinctJson, type Schema } from "../keywords.ts";
import { type Conjunction, generatedTypes, type TypeName, tighter } from "../logic/conjunction.ts";
import { formatBounds } from "../numbers/integers.ts";
import { compileString } from "../strings/strings.ts";

/** Stands for any count beyond it. */
const MANY = 1e9;
const MAX_DEPTH = 5;
/** Smaller shares of a bound than this may have no decimals in between. */
const NARROW = 1e-5;

/** `exact`: the schema is a list, so there are no more. */
export function countValues(context: SchemaContext, schema: Schema, path: string): { count: number; exact: boolean } {
  const cases = typeof schema === "boolean" ? [] : context.cases.of(schema, path);
  const listed = cases.flatMap((each) => each.listed ?? []);
  const fitting = distinctJson(listed).filter((value) => context.conforms(value, schema, path));
  if (cases.length > 0 && cases.every((each) => each.listed !== null)) return { count: fitting.length, exact: true };
  return { count: Math.max(fitting.length, atLeast(context, schema, path, 0)), exact: false };
}

function atLeast(context: SchemaContext, schema: Schema, path: string, depth: number): number {
  if (typeof schema === "boolean") return schema ? MANY : 0;
  if (depth > MAX_DEPTH) return 1;
  const counts = context.cases.of(schema, path).map((each) => {
    if (each.listed !== null) return each.listed.some((value) => context.conforms(value, schema, path)) ? 1 : 0;
    const typed = generatedTypes(each).map((type) => ofType(context, type, each, path, depth));
    return typed.reduce((sum, count) => sum + count, 0);
  });
  return Math.min(MANY, Math.max(0, ...counts));
}

function ofType(context: SchemaContext, type: TypeName, all: Conjunction, path: string, depth: number): number {
  switch (type) {
    case "null":
      return all.excluded.includes(null) ? 0 : 1;
    case "boolean":
      return [true, false].filter((value) => !all.excluded.includes(value)).length;
    case "number":
      return numbers(all);
    case "string": {
      const expression = compileString(context, all, path);
      return isNever(expression) ? 0 : texts(expression, context.text.builder, 0);
    }
    case "array":
      return arrays(context, all, path, depth);
    default:
      return objects(context, all, path, depth);
  }
}

function numbers(all: Conjunction): number {
  const [least, greatest] = formatBounds(all.formats[0] ?? "");
  const low = tighter(all.low, { value: least, exclusive: false }, 1)!;
  const high = tighter(all.high, { value: greatest, exclusive: false }, -1)!;
  const bounds = [low, high].filter(({ value }) => Number.isFinite(value));
  const size = Math.max(1, ...bounds.map(({ value }) => Math.abs(value)));
  if (
    all.formats.length > 1 ||
    all.divisors.length > 1 ||
    all.notDivisors.length > 0 ||
    (all.divisors[0] ?? 0) > 1e6 ||
    size > 2 ** 52
  )
    return 1;
  if (bounds.length < 2) return MANY;
  const step = all.divisors[0] ?? (all.integer ? 1 : size * NARROW);
  const [first, last] = [Math.ceil(low.value / step), Math.floor(high.value / step)];
  const edges = bounds.filter(({ exclusive }) => exclusive).length;
  return Math.max(0, last - first + 1 - edges - all.excluded.length);
}

function arrays(context: SchemaContext, all: Conjunction, path: string, depth: number): number {
  if (all.contains.length > 0 || all.maxItems === 0) return 1;
  const first = all.tuples.map((tuple) => tuple.prefix[0] ?? tuple.rest ?? true);
  const item = first.reduce((a: Schema, b: Schema) => context.cases.both(a, b), true);
  // The first item varies; the others differ from it.
  const count = atLeast(context, item, path, depth + 1);
  return Math.max(1, all.unique ? count - all.minItems : count);
}

function objects(context: SchemaContext, all: Conjunction, path: string, depth: number): number {
  if (all.conditions.length + all.some.length + all.names.length > 0 || all.maxProperties !== null) return 1;
  const names = new Set(all.layers.flatMap((layer) => Object.keys(layer.properties)));
  if (names.size === 0) {
    const free = all.layers.every(({ patterns, additional }) => patterns.length === 0 && (additional ?? true) === true);
    return free && !context.options.closedObjects ? MANY : 1;
  }
  if (all.layers.length > 1) return 1;
  // One member varies; the others stay the same.
  const counts = Object.values(all.layers[0]!.properties).map((by) => atLeast(context, by, path, depth + 1));
  return Math.max(1, ...counts);
}

/** Different texts. Each has its own value where the expression is a string's. */
function texts(expression: Expression, builder: GrammarBuilder, depth: number): number {
  const inner = (part: Expression): number => texts(part, builder, depth + 1);
  if (depth > 50) return 1;
  switch (expression.kind) {
    case "set":
      return expression.set.reduce((sum, [low, high]) => sum + high - low + 1, 0);
    case "texts":
      return new Set(expression.texts).size;
    // What comes before and after stays the same.
    case "sequence":
      return Math.max(1, ...expression.parts.map(inner));
    case "choice":
      return Math.max(0, ...expression.options.map(inner));
    case "repeat":
      if (expression.max === null) return MANY;
      return Math.max(inner(expression.body), expression.max - expression.min + 1);
    case "rule":
      return builder.bodies[expression.rule] ? inner(builder.bodies[expression.rule]!) : 1;
    case "dfa":
      return countTexts(expression.dfa);
    default:
      return 1;
  }
}

/** Texts that an automaton accepts, found shortest first. A billion stands for any more. */
export function countTexts({ states }: CharDfa): number {
  let count = 0;
  /** Per state: texts of one length that lead there. */
  let reached = new Map([[0, 1]]);
  for (let length = 0; length <= states.length * 2 && reached.size > 0 && count < MANY; length++) {
    const next = new Map<number, number>();
    for (const [state, ways] of reached) {
      if (states[state]!.final) count += ways;
      for (const { set, target } of states[state]!.edges) {
        const characters = set.reduce((sum, [low, high]) => sum + high - low + 1, 0);
        next.set(target, Math.min(MANY, (next.get(target) ?? 0) + ways * characters));
      }
    }
    reached = next;
  }
  return Math.min(MANY, count);
}
