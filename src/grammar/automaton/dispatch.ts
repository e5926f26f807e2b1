// Free text that watches for triggers, by Aho-Corasick over characters. The first trigger in the text leads to its
// branch; all other text stays free. Structural tags and text up to an end marker use it.

import { type CodePointSet, codePoints, complementSet } from "../code-points.ts";
import type { Expression } from "../expression.ts";
import type { StateGraph } from "./state-graph.ts";

interface TrieNode {
  readonly children: Map<number, number>;
  /** The node of the longest proper suffix that is also a prefix of some trigger. */
  failure: number;
  /** Triggers completed here, by index. */
  readonly completed: number[];
}

export function emitDispatch(
  graph: StateGraph,
  expression: Expression & { kind: "dispatch" },
  emit: (branch: Expression, from: number, to: number) => void,
  from: number,
  to: number,
): void {
  const nodes = buildTrie(expression.triggers);
  const alphabet = [...new Set(expression.triggers.flatMap((trigger) => Array.from(trigger, codePointOf)))];
  const states = nodes.map(() => graph.state());
  const branches = expression.branches.map((branch) => {
    const start = graph.state();
    emit(branch, start, expression.loop ? states[0]! : to);
    return start;
  });
  graph.epsilon(from, states[0]!);
  const others = complementSet(codePoints(alphabet.map((point) => [point, point] as const)));
  for (const [index, state] of states.entries()) {
    if (expression.mayEnd) graph.epsilon(state, to);
    const targets = new Map<number, number[]>();
    for (const point of alphabet) {
      const next = advance(nodes, index, point);
      const completed = nodes[next]!.completed;
      for (const target of completed.length > 0 ? completed.map((id) => branches[id]!) : [states[next]!]) {
        targets.set(target, [...(targets.get(target) ?? []), point]);
      }
    }
    for (const [target, points] of targets) {
      graph.characters(
        state,
        codePoints(points.map((point) => [point, point] as const)) satisfies CodePointSet,
        target,
      );
    }
    graph.characters(state, others, states[0]!);
  }
}

function buildTrie(triggers: readonly string[]): TrieNode[] {
  const nodes: TrieNode[] = [{ children: new Map(), failure: 0, completed: [] }];
  for (const [id, trigger] of triggers.entries()) {
    let at = 0;
    for (const point of Array.from(trigger, codePointOf)) {
      let next = nodes[at]!.children.get(point);
      if (next === undefined) {
        next = nodes.length;
        nodes.push({ children: new Map(), failure: 0, completed: [] });
        nodes[at]!.children.set(point, next);
      }
      at = next;
    }
    nodes[at]!.completed.push(id);
  }
  const queue = [...nodes[0]!.children.values()];
  for (const at of queue) {
    const node = nodes[at]!;
    node.completed.push(...nodes[node.failure]!.completed.filter((id) => !node.completed.includes(id)));
    for (const [point, child] of node.children) {
      nodes[child]!.failure = advance(nodes, node.failure, point);
      queue.push(child);
    }
  }
  return nodes;
}

function advance(nodes: readonly TrieNode[], from: number, point: number): number {
  for (let at = from; ; at = nodes[at]!.failure) {
    const next = nodes[at]!.children.get(point);
    if (next !== undefined) return next;
    if (at === 0) return 0;
  }
}

function codePointOf(char: string): number {
  return char.codePointAt(0)!;
}
