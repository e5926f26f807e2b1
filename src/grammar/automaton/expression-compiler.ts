// Turns expressions into states of a StateGraph. Small rules without recursion are copied in place. Others become
// calls, which keeps the graph linear in the size of the grammar.
import { type CodePointSet, codePoints, complementSet } from "../code-points.ts";
import { type CharDfa, type Expression, type Grammar, never } from "../expression.ts";
import { joinBeginnings } from "./common-beginnings.ts";
import { RuleWeights } from "./rule-weights.ts";
import { StateGraph } from "./state-graph.ts";

// Free text that watches for triggers, by Aho-Corasick over characters. The first trigger in the text leads to its
// branch; all other text stays free. Structural tags and text up to an end marker use it.

interface TrieNode {
  readonly children: Map<number, number>;
  /** The node of the longest proper suffix that is also a prefix of some trigger. */
  failure: number;
  /** Triggers completed here, by index. */
  readonly completed: number[];
}

function emitDispatch(
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

/** Repeated bodies heavier than this are called, not copied. */
const COPY_WEIGHT = 4;
/** Tokens of more bytes are never legal under a grammar. */
export const LONGEST_TOKEN = 128;

export interface CompiledRules {
  readonly graph: StateGraph;
  /** Start state per rule; rule 0 is the root, rule 1 what follows the marker (never matches when there is none). */
  readonly starts: readonly number[];
  readonly marker: string;
}

export function compileExpressions(grammar: Grammar): CompiledRules {
  const compiler = new ExpressionCompiler(grammar);
  joinBeginnings(compiler.graph);
  return { graph: compiler.graph, starts: compiler.starts, marker: grammar.afterMarker?.marker ?? "" };
}

class ExpressionCompiler {
  readonly graph = new StateGraph();
  readonly starts: number[] = [];
  readonly #weights: RuleWeights;
  /** Both roots, then the grammar's rules (index + 2), then the rules made for repeated bodies. */
  readonly #bodies: Expression[];
  readonly #bodyRules = new Map<Expression, number>();

  constructor(grammar: Grammar) {
    this.#weights = new RuleWeights(grammar);
    this.#bodies = [grammar.root, grammar.afterMarker?.root ?? never, ...grammar.rules];
    // Emitting a rule may add rules for repeated bodies, so the list grows while it is walked.
    for (let rule = 0; rule < this.#bodies.length; rule++) {
      const start = this.graph.state();
      this.starts.push(start);
      if (rule >= 2 && rule < grammar.rules.length + 2 && this.#weights.inlined(rule - 2)) continue;
      const end = this.graph.state();
      this.graph.finals.add(end);
      this.#emit(this.#bodies[rule]!, start, end);
    }
  }

  /** Adds paths from `from` to `to`. Adds no edge into `from` or out of `to`, so that neighbours stay apart. */
  #emit(expression: Expression, from: number, to: number): void {
    const graph = this.graph;
    switch (expression.kind) {
      case "set":
        graph.characters(from, expression.set, to);
        return;
      case "texts":
        graph.texts(from, expression.texts, to);
        return;
      case "sequence": {
        const { parts } = expression;
        if (parts.length === 0) graph.epsilon(from, to);
        let at = from;
        for (const [index, part] of parts.entries()) {
          const next = index === parts.length - 1 ? to : graph.state();
          this.#emit(part, at, next);
          at = next;
        }
        return;
      }
      case "choice":
        for (const option of expression.options) this.#emit(option, from, to);
        return;
      case "repeat":
        this.#repeat(expression, from, to);
        return;
      case "rule":
        if (this.#weights.inlined(expression.rule)) this.#emit(this.#bodies[expression.rule + 2]!, from, to);
        else graph.call(from, expression.rule + 2, to);
        return;
      case "graph": {
        const states = [from, to, ...Array.from({ length: expression.nodes - 2 }, () => graph.state())];
        for (const edge of expression.edges) this.#emit(edge.expression, states[edge.from]!, states[edge.to]!);
        return;
      }
      case "dfa":
        this.#dfa(expression.dfa, expression.json, from, to);
        return;
      case "mark": {
        const marked = graph.state();
        const byte = expression.text.charCodeAt(0);
        graph.marked.add(marked);
        graph.byteRange(from, byte, byte, marked);
        graph.epsilon(marked, to);
        return;
      }
      case "dispatch":
        emitDispatch(graph, expression, (branch, start, end) => this.#emit(branch, start, end), from, to);
        return;
      case "assertion":
        throw new Error("an assertion is decided before expressions are compiled");
      default:
        expression satisfies never;
    }
  }

  #repeat(expression: Expression & { kind: "repeat" }, from: number, to: number): void {
    const graph = this.graph;
    const { min, max } = expression;
    const copies = max ?? min + 1;
    const body = copies > 2 && this.#weights.of(expression.body) > COPY_WEIGHT ? null : expression.body;
    const rule = body ? -1 : this.#ruleFor(expression.body);
    const emitBody = (start: number, end: number): void => {
      if (body) this.#emit(body, start, end);
      else graph.call(start, rule, end);
    };
    const counted = this.#weights.consumes(expression.body);
    const chain = [graph.state()];
    graph.epsilon(from, chain[0]!);
    for (let count = 0; count < (max ?? min); count++) {
      const next = graph.state();
      emitBody(chain[count]!, next);
      chain.push(next);
      if (counted) graph.maskLike.set(next, chain[sameMask(count + 1, min, max)] ?? next);
    }
    if (max === null) {
      const loop = chain[min]!;
      const after = graph.state();
      emitBody(loop, after);
      graph.epsilon(after, loop);
      graph.epsilon(loop, to);
    } else {
      for (let count = min; count <= max; count++) graph.epsilon(chain[count]!, to);
    }
  }

  #ruleFor(body: Expression): number {
    let rule = this.#bodyRules.get(body);
    if (rule === undefined) {
      rule = this.#bodies.length;
      this.#bodies.push(body);
      this.#bodyRules.set(body, rule);
    }
    return rule;
  }

  #dfa(dfa: CharDfa, json: boolean, from: number, to: number): void {
    const graph = this.graph;
    const ids = dfa.states.map(() => graph.state());
    graph.epsilon(from, ids[0]!);
    for (const [index, state] of dfa.states.entries()) {
      if (state.final) graph.epsilon(ids[index]!, to);
      for (const edge of state.edges) {
        if (json) graph.jsonCharacters(ids[index]!, edge.set, ids[edge.target]!);
        else graph.characters(ids[index]!, edge.set, ids[edge.target]!);
      }
    }
  }
}

/**
 * Maps a position in a counted repetition to the earliest one with the same mask. Two positions have the same mask when
 * no token is long enough to reach a bound from either. Every iteration consumes at least one byte.
 */
function sameMask(count: number, min: number, max: number | null): number {
  if (min - count > LONGEST_TOKEN) return 0;
  if (max !== null && count >= min && max - count > LONGEST_TOKEN) return min;
  return count;
}
