// Runs a program over bytes, from one configuration to the next. Stacks are shared graphs with one node per rule call and
// position, as in Earley's algorithm, so ambiguity and left recursion stay polynomial. Configurations are interned and
// remember their successors. A byte seen before in the same configuration costs one table lookup.

import type { Program } from "../automaton/program.ts";
import type { CharacterSet } from "./character-slices.ts";
import { type Items, StackGraph, type StackNode } from "./stack-graph.ts";
import { type StateSet, StateSets } from "./state-sets.ts";

// A configuration is a set of items, each a state set and a stack: all that the grammar considers possible after some
// text, closed under links, calls and returns. It caches what is known about it: its successors, its token mask, and the
// characters in which it is free (see free-text.ts).

export class Configuration {
  /** The items that can consume a byte, at most one for a node. */
  readonly items: Items;
  /** The items before closing: they determine everything else. */
  readonly kernel: Items;
  /** The whole text may end here. */
  readonly accepting: boolean;
  /** The frame may end here and return to its unknown caller (see token-masks.ts). */
  readonly escaped: boolean;
  /** Per byte class; null = no continuation. */
  next: (Configuration | null | undefined)[] = [];
  epoch: number;
  mask: Int32Array | null = null;
  /** See free-text.ts; undefined = not known yet. */
  freedom: Freedom | null | undefined;
  sustained: CharacterSet | null | undefined;

  constructor(kernel: Items, closed: Items & { accepting: boolean; escaped: boolean }, epoch: number) {
    this.kernel = kernel;
    this.items = closed;
    this.accepting = closed.accepting;
    this.escaped = closed.escaped;
    this.epoch = epoch;
  }

  holds(state: number, node: StackNode): boolean {
    return this.items.nodes.some((each, index) => each === node && this.items.sets[index]!.states.includes(state));
  }

  /** Nothing can follow: the text is complete or the frame was left for good. */
  get exhausted(): boolean {
    return this.items.sets.length === 0;
  }
}

/** Every character of the set leads to the target. */
export interface Freedom {
  readonly set: CharacterSet;
  /** How many of them are ASCII. */
  readonly characters: number;
  readonly target: Configuration;
}

/** With more configurations and state sets than this, a matcher forgets all of them and starts again. */
const MAX_INTERNED = 40_000;
/** A configuration of 2^n items takes about as much memory as two small ones. */
const ITEMS_PER_CONFIGURATION = 5;

/** The allowance is used up. What was found so far is remembered, so the next attempt gets further. */
export class Postponed extends Error {
  override name = "Postponed";
}

export class Matcher {
  readonly program: Program;
  readonly stacks: StackGraph;
  readonly sets: StateSets;
  /** Work, in items visited, that the caller may still spend. Below zero, whatever is not known yet is postponed. */
  allowance: number = Number.MAX_SAFE_INTEGER;
  epoch = 0;
  readonly #single = new Map<StateSet, Map<StackNode, Configuration>>();
  readonly #several = new Map<string, Configuration>();
  #made = 0;

  constructor(program: Program) {
    this.program = program;
    this.sets = new StateSets(program, (work) => this.spend(work));
    this.stacks = new StackGraph(program, this.sets, (work) => this.spend(work));
  }

  start(): Configuration {
    return this.only(this.sets.single(this.program.starts[0]!), this.stacks.bottom);
  }

  /** After the marker token. */
  startAfterMarker(): Configuration {
    return this.only(this.sets.single(this.program.starts[1]!), this.stacks.bottom);
  }

  /** The same states with an unknown caller, for what does not depend on the stack. */
  frame(set: StateSet): Configuration {
    return this.only(set, this.stacks.unknown);
  }

  /** The configuration of one item. */
  only(set: StateSet, node: StackNode): Configuration {
    let byNode = this.#single.get(set);
    if (byNode === undefined) {
      byNode = new Map();
      this.#single.set(set, byNode);
    }
    let known = byNode.get(node);
    if (known === undefined) {
      known = this.#make({ sets: [set], nodes: [node] });
      byNode.set(node, known);
    }
    return known;
  }

  /** null when the byte (given by its class) is not legal. */
  advance(from: Configuration, byteClass: number): Configuration | null {
    this.renew(from);
    const known = from.next[byteClass];
    if (known !== undefined) return known;
    if (this.allowance < 0) throw new Postponed();
    const next = this.#step(from, byteClass);
    from.next[byteClass] = next;
    return next;
  }

  /**
   * A configuration with the same mask, often the given one. Calls that are about to end have returned in it, and
   * counted states stand for each other. So all positions of a long string lead to the same configuration.
   */
  maskLike(configuration: Configuration): Configuration {
    const { kernel } = configuration;
    const { sets, nodes } = this.stacks.returned(kernel);
    const like = sets.map((set) => this.sets.maskLike(set));
    const same = nodes === kernel.nodes && like.every((set, item) => set === kernel.sets[item]);
    return same ? configuration : this.#of(like, nodes);
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

  /** Interned configurations and state sets. */
  get size(): number {
    return this.#made + this.sets.size;
  }

  /** Forgets everything interned. The configurations that callers hold stay valid. */
  forget(): void {
    this.epoch++;
    this.#made = 0;
    this.sets.forget();
    this.#single.clear();
    this.#several.clear();
    this.stacks.forget();
  }

  spend(work: number): void {
    this.allowance -= work;
  }

  #step({ items }: Configuration, byteClass: number): Configuration | null {
    if (items.sets.length === 1) {
      const next = this.sets.next(items.sets[0]!, byteClass);
      return next === null ? null : this.only(next, items.nodes[0]!);
    }
    const sets: StateSet[] = [];
    const nodes: StackNode[] = [];
    for (let item = 0; item < items.sets.length; item++) {
      const next = this.sets.next(items.sets[item]!, byteClass);
      if (next === null) continue;
      sets.push(next);
      nodes.push(items.nodes[item]!);
    }
    this.spend(1 + (items.sets.length >> 3));
    return sets.length === 0 ? null : this.#of(sets, nodes);
  }

  #of(sets: readonly StateSet[], nodes: readonly StackNode[]): Configuration {
    if (sets.length === 1) return this.only(sets[0]!, nodes[0]!);
    const key = sets.map((set, item) => `${set.id}.${nodes[item]!.id}`).join(" ");
    let known = this.#several.get(key);
    if (known === undefined) {
      known = this.#make({ sets, nodes });
      this.#several.set(key, known);
    }
    return known;
  }

  #make(kernel: Items): Configuration {
    if (this.size >= MAX_INTERNED) this.forget();
    this.spend(1);
    const closed = this.stacks.close(kernel);
    this.#made += 1 + (closed.sets.length >> ITEMS_PER_CONFIGURATION);
    return new Configuration(kernel, closed, this.epoch);
  }
}
