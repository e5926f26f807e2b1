// What experts do, over rows that are in the order of their experts.

import type { Graph, Value } from "../graph/graph.ts";
import { choose, concat, greater, slice } from "../graph/ops.ts";

/** What one expert does: rows [r, in] to [r, out]. */
export type ExpertMap = (g: Graph, expert: number, rows: Value) => Value;

/** Experts without rows are skipped. The runtime packs their weights only if g is not a branch itself. */
export function chosenExperts(g: Graph, x: Value, bounds: readonly Value[], out: number, map: ExpertMap): Value {
  const none = g.constant(new Float32Array(0), [0, out]);
  const parts = bounds.slice(1).map((end, expert) => {
    const start = bounds[expert]!;
    const [part] = choose(g, greater(g, end, start), [["rows", out]], {
      yes: (sub) => [map(sub, expert, slice(sub, x, 0, start, end, "rows"))],
      no: () => [none],
    });
    return part!;
  });
  return concat(g, parts, 0);
}

/** The same without branches, for graphs that are branches. A product without rows costs little. */
export function everyExpert(g: Graph, x: Value, bounds: readonly Value[], map: ExpertMap): Value {
  const parts = bounds.slice(1).map((end, expert) => map(g, expert, slice(g, x, 0, bounds[expert]!, end, "rows")));
  return concat(g, parts, 0);
}
