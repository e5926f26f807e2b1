import { FLYWHEEL, Graph } from "../graph.ts";

/** Whether the graph has matrix products of the runtime, also in branches. All other operations of the runtime are short. */
export function hasRuntimeProducts(graph: Graph): boolean {
  return graph.nodes.some(
    ({ op, domain, attributes }) =>
      (domain !== FLYWHEEL && op.includes("MatMul")) ||
      Object.values(attributes).some((value) => value instanceof Graph && hasRuntimeProducts(value)),
  );
}
