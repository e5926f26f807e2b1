// Array schemas: items by position, item counts, contains and uniqueItems.

import {
  choice,
  type Expression,
  empty,
  type GraphEdge,
  isNever,
  never,
  optional,
  repeat,
  sequence,
  text,
} from "../../expression.ts";
import type { SchemaContext } from "../context.ts";
import { type Schema, schemaError } from "../keywords.ts";
import type { Conjunction, Contains } from "../logic/conjunction.ts";
import { countValues } from "./value-count.ts";

// What an array may hold at each position, and how many items it may have.
interface Positions {
  /** One schema per position. */
  readonly prefix: readonly Schema[];
  /** The schema of all positions after the prefix. */
  readonly rest: Schema;
  readonly min: number;
  /** null = no limit. */
  readonly max: number | null;
  /** Whether all items must differ. */
  readonly distinct: boolean;
}

// Arrays in which some items must satisfy another schema, as a graph over the position and the items counted so far.

const MAX_NODES = 5_000;

function countedItems(
  context: SchemaContext,
  demands: readonly Contains[],
  { prefix, rest, min, max, distinct }: Positions,
  path: string,
): Expression {
  const json = context.text;
  const lastPosition = Math.max(1, prefix.length, min, max ?? 0);
  const nodes = new Map<string, number>();
  const queue: [position: number, counts: readonly number[], node: number][] = [];
  const edges: GraphEdge[] = [];
  const node = (position: number, counts: readonly number[]): number => {
    const key = `${position} ${counts.join()}`;
    let id = nodes.get(key);
    if (id === undefined) {
      if (nodes.size > MAX_NODES) throw schemaError('the schema keyword "contains" needs too many states', path);
      id = nodes.size === 0 ? 0 : nodes.size + 1;
      nodes.set(key, id);
      queue.push([position, counts, id]);
    }
    return id;
  };
  const items = new Map<Schema, readonly Variant[]>();
  const variantsOf = (schema: Schema): readonly Variant[] => {
    const known = items.get(schema) ?? itemVariants(context, schema, demands, path);
    items.set(schema, known);
    return known;
  };
  const enough = (counts: readonly number[]): boolean => demands.every((demand, index) => counts[index]! >= demand.min);
  node(
    0,
    demands.map(() => 0),
  );
  for (const [position, counts, from] of queue) {
    if (position > 0 && position >= min && enough(counts)) edges.push({ from, to: 1, expression: empty });
    if (max !== null && position >= max) continue;
    for (const { expression, counted } of variantsOf(prefix[position] ?? rest)) {
      const next = counts.map((count, index) => (counted[index] ? count + 1 : count));
      if (next.some((count, index) => demands[index]!.max !== null && count > demands[index]!.max!)) continue;
      const capped = next.map((count, index) => Math.min(count, demands[index]!.max ?? demands[index]!.min));
      const to = node(Math.min(position + 1, lastPosition), capped);
      edges.push({ from, to, expression: position === 0 ? expression : sequence(json.comma(distinct), expression) });
    }
  }
  const options: Expression[] = [];
  if (min === 0 && demands.every((demand) => demand.min === 0)) options.push(text("[]"));
  if (edges.some((edge) => edge.to === 1)) {
    options.push(json.brackets({ kind: "graph", nodes: nodes.size + 1, edges }, distinct));
  }
  return options.length === 0
    ? context.impossible("no array contains what the schema demands", path)
    : choice(...options);
}

interface Variant {
  readonly expression: Expression;
  readonly counted: readonly boolean[];
}

/** An item that does not count needs to fail the schema only if the count has a maximum. */
function itemVariants(context: SchemaContext, schema: Schema, demands: readonly Contains[], path: string): Variant[] {
  const { cases } = context;
  let variants: { schema: Schema; counted: boolean[] }[] = [{ schema, counted: [] }];
  for (const demand of demands) {
    variants = variants.flatMap((variant) => [
      { schema: cases.both(variant.schema, demand.schema), counted: [...variant.counted, true] },
      {
        schema: demand.max === null ? variant.schema : cases.both(variant.schema, cases.opposite(demand.schema)),
        counted: [...variant.counted, false],
      },
    ]);
  }
  return variants
    .map(({ schema: each, counted }) => ({
      expression: context.text.builder.rule(context.compile(each, `${path}/contains`)),
      counted,
      never: isNever(context.compile(each, `${path}/contains`)),
    }))
    .filter((variant) => !variant.never);
}

/** Caps any given maximum. A larger minimum is refused. */
const MAX_COUNTED = 20_000;

export function compileArray(context: SchemaContext, all: Conjunction, path: string): Expression {
  const { minItems: min } = all;
  if (min > MAX_COUNTED) throw schemaError(`the schema keyword "minItems" is supported up to ${MAX_COUNTED}`, path);
  if (all.maxItems !== null && all.maxItems < min) {
    return context.impossible('"maxItems" is less than "minItems"', path);
  }
  const max = all.maxItems === null ? null : Math.min(all.maxItems, MAX_COUNTED);
  const distinct = all.unique && (max === null || max > 1);
  const positions: Positions = { ...itemSchemas(context, all), min, max, distinct };
  if (distinct && !hasEnoughValues(context, all, positions, path)) {
    return context.impossible("too few values for distinct items", path);
  }
  if (all.contains.length > 0) return countedItems(context, all.contains, positions, path);
  return plainItems(context, positions, path);
}

function plainItems(context: SchemaContext, { prefix, rest, min, max, distinct }: Positions, path: string): Expression {
  const json = context.text;
  const heads = prefix.map((item, index) => context.compile(item, `${path}/prefixItems/${index}`));
  const tail = max !== null && max <= prefix.length ? never : context.compile(rest, `${path}/items`);
  if (heads.length === 0) {
    if (!isNever(tail)) return json.elements(tail, min, max, distinct);
    return min === 0 ? text("[]") : context.impossible("no item fits the schema", path);
  }
  // Built from the end: `following` is what may come after `count` elements.
  let following = remaining(json.comma(distinct), tail, heads.length, min, max);
  for (let count = heads.length - 1; count >= 0; count--) {
    if (max !== null && count >= max) {
      following = count >= min ? empty : never;
      continue;
    }
    const element = isNever(heads[count]!)
      ? never
      : sequence(count === 0 ? empty : json.comma(distinct), heads[count]!, following);
    following = count === 0 ? element : count >= min ? optional(element) : element;
  }
  const options: Expression[] = [];
  if (min === 0) options.push(text("[]"));
  if (!isNever(following) && max !== 0) options.push(json.brackets(following, distinct));
  return options.length === 0 ? context.impossible("no item fits the schema", path) : choice(...options);
}

function remaining(comma: Expression, tail: Expression, count: number, min: number, max: number | null): Expression {
  const least = Math.max(0, min - count);
  const most = max === null ? null : Math.max(0, max - count);
  return repeat(isNever(tail) ? never : sequence(comma, tail), least, most);
}

/**
 * Whether every position up to `min` has more values than come before it, so that a generator never runs out of them.
 * Refuses schemas for which that is unknown.
 */
function hasEnoughValues(context: SchemaContext, all: Conjunction, positions: Positions, path: string): boolean {
  const { prefix, rest, min } = positions;
  const demand = all.contains[0];
  if (all.contains.length > 1 || (demand && (demand.max !== null || prefix.length > 0))) {
    throw schemaError('the schema keyword "uniqueItems" is not supported beside this "contains"', path);
  }
  const enough = (schema: Schema, needed: number): boolean => {
    if (needed <= 1) return true;
    const { count, exact } = countValues(context, schema, path);
    if (count >= needed) return true;
    if (exact && prefix.length === 0) return false;
    throw schemaError(
      `the schema keyword "uniqueItems" needs ${needed} different items, which cannot be told here`,
      path,
    );
  };
  return (
    prefix.every((schema, index) => index >= min || enough(schema, index + 1)) &&
    enough(rest, min > prefix.length ? min : 0) &&
    (demand === undefined || enough(context.cases.both(rest, demand.schema), demand.min))
  );
}

function itemSchemas(context: SchemaContext, { tuples }: Conjunction): { prefix: Schema[]; rest: Schema } {
  const both = (a: Schema, b: Schema): Schema => context.cases.both(a, b);
  const length = Math.max(0, ...tuples.map((tuple) => tuple.prefix.length));
  const at = (index: number): Schema =>
    tuples.map((tuple) => tuple.prefix[index] ?? tuple.rest ?? true).reduce(both, true);
  return { prefix: Array.from({ length }, (_, index) => at(index)), rest: at(length) };
}
