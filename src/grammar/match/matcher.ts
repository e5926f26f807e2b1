// Runs a program over bytes, from one configuration to the next. Stacks are shared graphs with one node per rule call and
// position, as in Earley's algorithm, so ambiguity and left recursion stay polynomial. Configurations are interned and
// remember their successors. A byte seen before in the same configuration costs one table lookup.

import type { Program } from "../automaton/program.ts";
import { Configuration } from "./configuration.ts";
import { BrokenConstraintError } from "./sequence-constraint.ts";
import { STATE_RADIX, StackGraph, type StackNode } from "./stack-graph.ts";
import { StateSteps } from "./state-steps.ts";

/** With more configurations than this, a matcher forgets all of them and starts again. */
const MAX_CONFIGURATIONS = 20_000;

export class Matcher {
  readonly program: Program;
  readonly stacks: StackGraph;
  readonly steps: StateSteps;
  /** Work, in items visited, that the caller may still spend. Below zero, BrokenConstraintError is thrown. */
  allowance: number = Number.POSITIVE_INFINITY;
  epoch = 0;
  #single = new Map<number, Configuration>();
  #several = new Map<string, Configuration>();

  constructor(program: Program) {
    this.program = program;
    this.steps = new StateSteps(program);
    this.stacks = new StackGraph(program, (work) => this.spend(work));
  }

  start(): Configuration {
    return this.#configuration([this.program.starts[0]!], [this.stacks.bottom]);
  }

  /** After the marker token. */
  startAfterMarker(): Configuration {
    return this.#configuration([this.program.starts[1]!], [this.stacks.bottom]);
  }

  /** The same states with an unknown caller, for what does not depend on the stack. */
  frame(states: readonly number[]): Configuration {
    return this.#configuration(
      states,
      states.map(() => this.stacks.unknown),
    );
  }

  /** One item of a configuration alone. */
  only(state: number, node: StackNode): Configuration {
    return this.#configuration([state], [node]);
  }

  /** null when the byte (given by its class) is not legal. */
  advance(from: Configuration, byteClass: number): Configuration | null {
    this.renew(from);
    const known = from.next[byteClass];
    if (known !== undefined) return known;
    const next = this.#step(from, byteClass);
    from.next[byteClass] = next;
    return next;
  }

  /** Forgets what a configuration of an earlier epoch remembers. */
  renew(configuration: Configuration): void {
    if (configuration.epoch === this.epoch) return;
    configuration.next = [];
    configuration.mask = null;
    configuration.freedom = undefined;
    configuration.sustained = undefined;
    configuration.epoch = this.epoch;
  }

  advanceBytes(from: Configuration, bytes: Uint8Array): Configuration | null {
    let at: Configuration | null = from;
    for (let i = 0; i < bytes.length && at; i++) at = this.advance(at, this.program.classes[bytes[i]!]!);
    return at;
  }

  /** Interned configurations. */
  get size(): number {
    return this.#single.size + this.#several.size;
  }

  /** Forgets all interned configurations. Those that callers hold stay valid. */
  forget(): void {
    this.epoch++;
    this.#single.clear();
    this.#several.clear();
    this.stacks.forget();
  }

  spend(work: number): void {
    this.allowance -= work;
    if (this.allowance < 0) throw new BrokenConstraintError("The grammar is too ambiguous to follow at this speed.");
  }

  #step(from: Configuration, byteClass: number): Configuration | null {
    const { byteOffsets, byteEdges } = this.program;
    const states: number[] = [];
    const nodes: StackNode[] = [];
    let edges = 0;
    for (let item = 0; item < from.states.length; item++) {
      const state = from.states[item]!;
      const end = byteOffsets[state + 1]!;
      edges += end - byteOffsets[state]!;
      for (let edge = byteOffsets[state]!; edge < end; edge += 2) {
        const range = byteEdges[edge]!;
        if (byteClass >= (range & 0xff) && byteClass <= range >> 8) {
          states.push(byteEdges[edge + 1]!);
          nodes.push(from.nodes[item]!);
        }
      }
    }
    this.spend(1 + ((from.states.length * 8 + edges) >> 6));
    return states.length === 0 ? null : this.#configuration(states, nodes);
  }

  #configuration(states: readonly number[], nodes: readonly StackNode[]): Configuration {
    if (states.length === 1) {
      const key = nodes[0]!.id * STATE_RADIX + states[0]!;
      const known = this.#single.get(key);
      return known ?? this.#intern(this.#single, key, states, nodes);
    }
    const keys = [...new Set(states.map((state, index) => nodes[index]!.id * STATE_RADIX + state))].sort(
      (a, b) => a - b,
    );
    if (keys.length === 1) return this.#configuration(states.slice(0, 1), nodes.slice(0, 1));
    const key = keys.join(" ");
    const known = this.#several.get(key);
    if (known) return known;
    const byId = new Map(nodes.map((node) => [node.id, node]));
    return this.#intern(
      this.#several,
      key,
      keys.map((item) => item % STATE_RADIX),
      keys.map((item) => byId.get(Math.floor(item / STATE_RADIX))!),
    );
  }

  #intern<K>(
    table: Map<K, Configuration>,
    key: K,
    states: readonly number[],
    nodes: readonly StackNode[],
  ): Configuration {
    if (this.size >= MAX_CONFIGURATIONS) this.forget();
    const made = new Configuration({ states, nodes }, this.stacks.close(states, nodes), this.epoch);
    table.set(key, made);
    return made;
  }
}
