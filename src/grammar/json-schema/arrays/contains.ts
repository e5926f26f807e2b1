// Arrays in which some items must satisfy another schema, as a graph over the position and the items counted so far.

import { choice, type Expression, empty, type GraphEdge, isNever, sequence, text } from "../../expression.ts";
import type { SchemaContext } from "../context.ts";
import { type Schema, schemaError } from "../keywords.ts";
import type { Contains } from "../logic/conjunction.ts";
import type { Positions } from "./positions.ts";

const MAX_NODES = 5_000;

export function countedItems(
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
