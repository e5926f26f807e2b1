// Turns the graph into a program: removes dead ends and unreachable parts, follows trivial links, groups bytes into
// classes and lays out the edges in flat arrays.

import { GrammarError } from "../grammar-error.ts";
import type { CompiledRules } from "./expression-compiler.ts";
import type { Program } from "./program.ts";
import type { GraphState } from "./state-graph.ts";

export function linkProgram({ graph, starts, marker }: CompiledRules): Program {
  const states = graph.states;
  const live = productive(states, starts);
  if (!live[starts[0]!]) throw new GrammarError("the constraint can never be satisfied: no text matches it");
  const alias = followTrivial(states, live);
  const order = reachable(states, starts, live, alias);
  const ids = new Map<number, number>(order.map((state, index) => [state, index]));
  const renamed = (state: number): number => ids.get(alias[state]!)!;
  const { classes, classCount } = byteClasses(order.map((state) => states[state]!));

  const byteRows: number[][] = [];
  const epsilonRows: number[][] = [];
  const callRows: number[][] = [];
  for (const id of order) {
    const state = states[id]!;
    const bytes: number[] = [];
    for (let i = 0; i < state.bytes.length; i += 3) {
      if (!live[state.bytes[i + 2]!]) continue;
      bytes.push(classes[state.bytes[i]!]! | (classes[state.bytes[i + 1]!]! << 8), renamed(state.bytes[i + 2]!));
    }
    const calls: number[] = [];
    for (let i = 0; i < state.calls.length; i += 2) {
      const [rule, returnTo] = [state.calls[i]!, state.calls[i + 1]!];
      if (live[starts[rule]!] && live[returnTo]) calls.push(rule, renamed(returnTo));
    }
    byteRows.push(bytes);
    callRows.push(calls);
    epsilonRows.push([...new Set(state.epsilon.filter((target) => live[target]).map(renamed))]);
  }
  const finals = Int32Array.from(order, (state) => (states[state]!.final ? 1 : 0));
  return {
    classes,
    classCount,
    marker: Int32Array.from(new TextEncoder().encode(marker)),
    starts: Int32Array.from(starts, (start) => ids.get(alias[start]!) ?? -1),
    finals,
    tails: tailStates(finals, byteRows, epsilonRows, callRows),
    maskLike: Int32Array.from(order, (state, index) => ids.get(alias[states[state]!.maskLike]!) ?? index),
    marks: order.some((state) => states[state]!.marked)
      ? Int32Array.from(order, (state) => (states[state]!.marked ? 1 : 0))
      : new Int32Array(0),
    byteOffsets: offsets(byteRows),
    byteEdges: Int32Array.from(byteRows.flat()),
    epsilonOffsets: offsets(epsilonRows),
    epsilonEdges: Int32Array.from(epsilonRows.flat()),
    callOffsets: offsets(callRows),
    callEdges: Int32Array.from(callRows.flat()),
  };
}

/** Marks the states from which their rule can end. A call can end if its rule and the state it returns to can. */
function productive(states: readonly GraphState[], starts: readonly number[]): Uint8Array {
  const live = new Uint8Array(states.length);
  const before: number[][] = states.map(() => []);
  const queue: number[] = [];
  for (const [id, state] of states.entries()) {
    for (let i = 2; i < state.bytes.length; i += 3) before[state.bytes[i]!]!.push(id);
    for (const target of state.epsilon) before[target]!.push(id);
    for (let i = 0; i < state.calls.length; i += 2) {
      before[state.calls[i + 1]!]!.push(id);
      before[starts[state.calls[i]!]!]!.push(id);
    }
    if (state.final) queue.push(id);
  }
  const canEnd = (state: GraphState): boolean => {
    if (state.final || state.epsilon.some((target) => live[target])) return true;
    for (let i = 2; i < state.bytes.length; i += 3) if (live[state.bytes[i]!]) return true;
    for (let i = 0; i < state.calls.length; i += 2) {
      if (live[starts[state.calls[i]!]!] && live[state.calls[i + 1]!]) return true;
    }
    return false;
  };
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (live[id] || !canEnd(states[id]!)) continue;
    live[id] = 1;
    for (const previous of before[id]!) queue.push(previous);
  }
  return live;
}

/** A state whose only edge is a link to a live state is replaced by that state. */
function followTrivial(states: readonly GraphState[], live: Uint8Array): Int32Array {
  const alias = Int32Array.from(states, (_, id) => id);
  for (let id = 0; id < states.length; id++) {
    let at = id;
    for (let hops = 0; hops < 64; hops++) {
      const state = states[at]!;
      const onward = state.epsilon.filter((target) => live[target]);
      const links = state.final || state.marked || state.bytes.length > 0 || state.calls.length > 0;
      if (links || onward.length !== 1 || onward[0] === at) break;
      at = onward[0]!;
      if (at === id) break;
    }
    alias[id] = at;
  }
  return alias;
}

function reachable(
  states: readonly GraphState[],
  starts: readonly number[],
  live: Uint8Array,
  alias: Int32Array,
): number[] {
  const seen = new Uint8Array(states.length);
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
    const state = states[order[next]!]!;
    for (let i = 2; i < state.bytes.length; i += 3) if (live[state.bytes[i]!]) visit(state.bytes[i]!);
    for (const target of state.epsilon) visit(target);
    for (let i = 0; i < state.calls.length; i += 2) {
      const start = starts[state.calls[i]!]!;
      if (!live[start] || !live[state.calls[i + 1]!]) continue;
      visit(start);
      visit(state.calls[i + 1]!);
    }
  }
  return order;
}

/** Classes are runs of bytes between the borders of all edges, numbered in byte order, so ranges stay ranges. */
function byteClasses(states: readonly GraphState[]): { classes: Int32Array; classCount: number } {
  const border = new Uint8Array(257);
  for (const state of states) {
    for (let i = 0; i < state.bytes.length; i += 3) {
      border[state.bytes[i]!] = 1;
      border[state.bytes[i + 1]! + 1] = 1;
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

function tailStates(
  finals: Int32Array,
  bytes: readonly number[][],
  epsilon: readonly number[][],
  calls: readonly number[][],
): Int32Array {
  return finals.map((final, id) =>
    final && bytes[id]!.length === 0 && epsilon[id]!.length === 0 && calls[id]!.length === 0 ? 1 : 0,
  );
}

function offsets(rows: readonly number[][]): Int32Array {
  const out = new Int32Array(rows.length + 1);
  for (const [index, row] of rows.entries()) out[index + 1] = out[index]! + row.length;
  return out;
}
