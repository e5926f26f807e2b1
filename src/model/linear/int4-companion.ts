// An int4 product of rows whose number is known only at run time. On some machines a lone row gets other bits than two
// (int4-probe.ts), so it gets itself as a companion.

import type { Graph, Value } from "../../graph/graph.ts";
import { concat, equal, ints, slice } from "../../graph/ops.ts";
import { INT4_ROWS } from "./int4-probe.ts";

/** ONNX's number for int64. */
const INT64 = 7;

/** x: [r, in]; map: rows to rows. */
export function withCompanion(g: Graph, x: Value, map: (rows: Value) => Value): Value {
  const one = { shape: [1], dtype: "int64" } as const;
  const [count] = g.add("Shape", [x], [one], { start: 0, end: 1 });
  const [rest] = g.add("Mod", [count!, ints(g, [INT4_ROWS])], [one]);
  const [extra] = g.add("Cast", [equal(g, rest!, ints(g, [1]))], [one], { to: INT64 });
  const rows = concat(g, [x, slice(g, x, 0, 0, extra!, "extra")], 0);
  return slice(g, map(rows), 0, 0, count!, x.shape[0]!);
}
