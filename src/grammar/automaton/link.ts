// Turns the graph into a program: removes dead ends and unreachable parts, follows trivial links, groups bytes into
// classes and lays out the edges in flat arrays.

import { GrammarError } from "../grammar-error.ts";
import type { CompiledRules } from "./expression-compiler.ts";
import type { Program } from "./program.ts";
import { type Rows, rowsOf, type StateGraph } from "./state-graph.ts";

interface Edges {
  readonly size: number;
  /** Final or marked: not to be replaced by another state. */
  readonly special: ReadonlySet<number>;
  /** Low byte, high byte, target. */
  readonly bytes: Rows;
  readonly epsilon: Rows;
  /** Rule, return state. */
  readonly calls: Rows;
}

export function linkProgram({ graph, starts, marker }: CompiledRules): Program {
  const edges: Edges = {
    size: graph.size,
    special: new Set([...graph.finals, ...graph.marked]),
    bytes: rowsOf(graph.size, graph.byteEdges, 4),
    epsilon: rowsOf(graph.size, graph.epsilonEdges, 2),
    calls: rowsOf(graph.size, graph.callEdges, 3),
  };
  const live = productive(graph, starts);
  if (!live[starts[0]!]) throw new GrammarError("the constraint can never be satisfied: no text matches it");
  const alias = followTrivial(edges, live);
  const order = reachable(edges, starts, live, alias);
  const ids = new Int32Array(graph.size).fill(-1);
  for (const [index, state] of order.entries()) ids[state] = index;
  const { classes, classCount } = byteClasses(edges.bytes, order);
  const byteRows = new RowWriter(order.length);
  const epsilonRows = new RowWriter(order.length);
  const callRows = new RowWriter(order.length);
  for (const state of order) {
    const { bytes, epsilon, calls } = edges;
    for (let i = bytes.offsets[state]!; i < bytes.offsets[state + 1]!; i += 3) {
      const target = bytes.values[i + 2]!;
      if (!live[target]) continue;
      byteRows.values.push(classes[bytes.values[i]!]! | (classes[bytes.values[i + 1]!]! << 8), ids[alias[target]!]!);
    }
    const first = epsilonRows.values.length;
    for (let i = epsilon.offsets[state]!; i < epsilon.offsets[state + 1]!; i++) {
      if (!live[epsilon.values[i]!]) continue;
      const target = ids[alias[epsilon.values[i]!]!]!;
      if (epsilonRows.values.indexOf(target, first) === -1) epsilonRows.values.push(target);
    }
    for (let i = calls.offsets[state]!; i < calls.offsets[state + 1]!; i += 2) {
      const [rule, returnTo] = [calls.values[i]!, calls.values[i + 1]!];
      if (live[starts[rule]!] && live[returnTo]) callRows.values.push(rule, ids[alias[returnTo]!]!);
    }
    for (const rows of [byteRows, epsilonRows, callRows]) rows.end();
  }
  const finals = Int32Array.from(order, (state) => (graph.finals.has(state) ? 1 : 0));
  const empty = ({ offsets }: RowWriter, state: number): boolean => offsets[state] === offsets[state + 1];
  return {
    classes,
    classCount,
    marker: Int32Array.from(new TextEncoder().encode(marker)),
    starts: Int32Array.from(starts, (start) => ids[alias[start]!]!),
    finals,
    tails: finals.map((final, state) =>
      final && empty(byteRows, state) && empty(epsilonRows, state) && empty(callRows, state) ? 1 : 0,
    ),
    maskLike: Int32Array.from(order, (state, index) => {
      const like = ids[alias[graph.maskLike.get(state) ?? state]!]!;
      return like === -1 ? index : like;
    }),
    marks: order.some((state) => graph.marked.has(state))
      ? Int32Array.from(order, (state) => (graph.marked.has(state) ? 1 : 0))
      : new Int32Array(0),
    byteOffsets: byteRows.offsets,
    byteEdges: Int32Array.from(byteRows.values),
    epsilonOffsets: epsilonRows.offsets,
    epsilonEdges: Int32Array.from(epsilonRows.values),
    callOffsets: callRows.offsets,
    callEdges: Int32Array.from(callRows.values),
  };
}

class RowWriter {
  readonly offsets: Int32Array;
  readonly values: number[] = [];
  #row = 0;

  constructor(rows: number) {
    this.offsets = new Int32Array(rows + 1);
  }

  end(): void {
    this.offsets[++this.#row] = this.values.length;
  }
}

/** Marks the states from which their rule can end. A call can end if its rule and the state it returns to can. */
function productive(graph: StateGraph, starts: readonly number[]): Uint8Array {
  const { size, byteEdges, epsilonEdges, callEdges, finals } = graph;
  const backward: number[] = [];
  for (let i = 0; i < byteEdges.length; i += 4) backward.push(byteEdges[i + 3]!, byteEdges[i]!);
  for (let i = 0; i < epsilonEdges.length; i += 2) backward.push(epsilonEdges[i + 1]!, epsilonEdges[i]!);
  const before = rowsOf(size, backward, 2);
  const calls: number[] = [];
  for (let i = 0; i < callEdges.length; i += 3) calls.push(callEdges[i + 2]!, i, starts[callEdges[i + 1]!]!, i);
  const callsBefore = rowsOf(size, calls, 2);
  const live = new Uint8Array(size);
  const queue = [...finals];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (live[id]) continue;
    live[id] = 1;
    for (let i = before.offsets[id]!; i < before.offsets[id + 1]!; i++) queue.push(before.values[i]!);
    for (let i = callsBefore.offsets[id]!; i < callsBefore.offsets[id + 1]!; i++) {
      const call = callsBefore.values[i]!;
      if (live[callEdges[call + 2]!] && live[starts[callEdges[call + 1]!]!]) queue.push(callEdges[call]!);
    }
  }
  return live;
}

/** A state whose only edge is a link to a live state is replaced by that state. */
function followTrivial({ size, special, bytes, epsilon, calls }: Edges, live: Uint8Array): Int32Array {
  const alias = Int32Array.from({ length: size }, (_, id) => id);
  const empty = ({ offsets }: Rows, id: number): boolean => offsets[id] === offsets[id + 1];
  const onward = (id: number): number => {
    let only = -1;
    for (let i = epsilon.offsets[id]!; i < epsilon.offsets[id + 1]!; i++) {
      const target = epsilon.values[i]!;
      if (!live[target]) continue;
      if (only !== -1) return -1;
      only = target;
    }
    return only === -1 || only === id || special.has(id) || !empty(bytes, id) || !empty(calls, id) ? -1 : only;
  };
  for (let id = 0; id < size; id++) {
    let at = id;
    for (let hops = 0; hops < 64; hops++) {
      const next = onward(at);
      if (next === -1) break;
      at = next;
      if (at === id) break;
    }
    alias[id] = at;
  }
  return alias;
}

function reachable(
  { size, bytes, epsilon, calls }: Edges,
  starts: readonly number[],
  live: Uint8Array,
  alias: Int32Array,
): number[] {
  const seen = new Uint8Array(size);
  const order: number[] = [];
  const visit = (target: number): void => {
    const id = alias[target]!;
    if (!live[id] || seen[id]) return;
    seen[id] = 1;
    order.push(id);
  };
  visit(starts[0]!);
  visit(starts[1]!);
  for (let next = 0; next < order.length; next++) {
    const state = order[next]!;
    for (let i = bytes.offsets[state]!; i < bytes.offsets[state + 1]!; i += 3) visit(bytes.values[i + 2]!);
    for (let i = epsilon.offsets[state]!; i < epsilon.offsets[state + 1]!; i++) visit(epsilon.values[i]!);
    for (let i = calls.offsets[state]!; i < calls.offsets[state + 1]!; i += 2) {
      const start = starts[calls.values[i]!]!;
      const returnTo = calls.values[i + 1]!;
      if (!live[start] || !live[returnTo]) continue;
      visit(start);
      visit(returnTo);
    }
  }
  return order;
}

/** Classes are runs of bytes between the borders of all edges, numbered in byte order, so ranges stay ranges. */
function byteClasses(
  { offsets, values }: Rows,
  states: readonly number[],
): { classes: Int32Array; classCount: number } {
  const border = new Uint8Array(257);
  for (const state of states) {
    for (let i = offsets[state]!; i < offsets[state + 1]!; i += 3) {
      border[values[i]!] = 1;
      border[values[i + 1]! + 1] = 1;
    }
  }
  const classes = new Int32Array(256);
  let current = 0;
  for (let byte = 1; byte < 256; byte++) {
    if (border[byte]) current++;
    classes[byte] = current;
  }
  return { classes, classCount: current + 1 };
}
