// The members of an object as a graph. A node records the members decided so far, how many were written, what remains of
// the condition on them, and whether a member comes next or has just been written.

import { spendEffort } from "../../compile-effort.ts";
import { choice, type Expression, empty, type GraphEdge, never } from "../../expression.ts";
import { GrammarError } from "../../grammar-error.ts";
import { atoms, type Formula, formulaKey, settled } from "../logic/formula.ts";

export interface Member {
  readonly name: string;
  readonly required: boolean;
  /** Ways to write it. `holds` lists the conditions (by atomKey) that each makes true. */
  readonly variants: readonly { readonly expression: Expression; readonly holds: ReadonlySet<string> }[];
}

export interface ContentDemands {
  readonly min: number;
  readonly max: number | null;
  readonly condition: Formula;
  readonly anyOrder: boolean;
  /** Whether names that the graph could repeat are kept apart while they are generated (see match/distinct). */
  readonly keptApart: boolean;
  /** Whether further members may come between the declared ones, not only after them. */
  readonly extrasAnywhere: boolean;
}

/** Members with undeclared names. */
export interface Extras {
  readonly any: Expression;
  /** How many different names they may have. */
  readonly names: number;
}

const MAX_NODES = 20_000;
/**
 * Members that the graph repeats more often than this on average are rules. Others are copied, so that their names can be
 * joined (see automaton/common-beginnings.ts).
 */
const MAX_COPIES = 4;
/** Limit for tracked members in free order. The graph has nodes for each set of them. */
const MAX_UNORDERED = 8;

interface Place {
  /** The object is empty so far or ends in a comma: a member must follow. */
  readonly due: boolean;
  /** Tracked members still to be decided: a bitset if they come in any order, else the index of the next. */
  readonly at: number;
  /** Members written, counted as far as a minimum or maximum requires. */
  readonly count: number;
  /** Tracked members left out, counted while so many could be left out that the minimum is not reached. */
  readonly skipped: number;
  readonly condition: Formula;
}

export class ObjectContent {
  readonly #comma: Expression;
  /** Members that the graph itself writes at most once, because other members or the order depend on them. */
  readonly #tracked: readonly Member[];
  /** By index: how many of the tracked members up to this one are required. */
  readonly #requiredBefore: Int32Array;
  /** Optional members in free order, or too many of them to count in order. Like extras, they must be kept apart. */
  readonly #loose: readonly Member[];
  /** Each of the loose members. */
  readonly #anyLoose: Expression;
  readonly #extras: Extras | null;
  readonly #condition: Formula;
  readonly #min: number;
  readonly #max: number | null;
  /** So many names may be left out. */
  readonly #slack: number;
  readonly #anyOrder: boolean;
  readonly #extrasAnywhere: boolean;
  readonly #shared: (part: Expression) => Expression;
  readonly #nodes = new Map<string, number>();
  readonly #queue: [Place, number][] = [];
  readonly #edges: GraphEdge[] = [];

  /** `shared` makes a rule of an expression. */
  constructor(
    comma: Expression,
    members: readonly Member[],
    extras: Extras | null,
    demands: ContentDemands,
    shared: (part: Expression) => Expression,
  ) {
    const { min, max, condition, anyOrder } = demands;
    const required = members.filter((member) => member.required);
    const remembered = new Set(atoms(condition).map(({ name }) => name));
    const optional = members.filter((member) => !member.required && !remembered.has(member.name));
    this.#comma = comma;
    this.#extras = extras;
    this.#condition = condition;
    // No counting is needed if the required members reach the minimum anyway.
    this.#min = min > required.length ? min : 0;
    this.#max = max !== null && (extras !== null || max < members.length) ? max : null;
    const tooMany = demands.keptApart && members.length * (this.#max ?? this.#min) > MAX_NODES / 2;
    const loose = new Set(anyOrder || tooMany ? optional : []);
    this.#loose = [...loose];
    this.#tracked = members.filter((member) => !loose.has(member));
    this.#requiredBefore = new Int32Array(this.#tracked.length + 1);
    for (const [index, member] of this.#tracked.entries()) {
      this.#requiredBefore[index + 1] = this.#requiredBefore[index]! + (member.required ? 1 : 0);
    }
    this.#slack = members.length + (extras?.names ?? 0) - this.#min;
    const ways = this.#loose.flatMap(({ variants }) => variants.map(({ expression }) => expression));
    this.#anyLoose = ways.length === 0 ? never : shared(choice(...ways));
    this.#anyOrder = anyOrder && this.#tracked.length <= MAX_UNORDERED;
    this.#extrasAnywhere = demands.extrasAnywhere || anyOrder;
    this.#shared = shared;
  }

  get mayBeEmpty(): boolean {
    const left = { at: 0, condition: this.#condition };
    return this.#min === 0 && this.#mayEnd(left);
  }

  /** Whether the graph alone could write a name twice. */
  get mayRepeat(): boolean {
    return this.#extras !== null || this.#loose.length > 0;
  }

  /** Content with at least one member. */
  expression(): Expression {
    if (this.#slack < 0) return never;
    this.#node({ due: true, at: 0, count: 0, skipped: 0, condition: this.#condition });
    for (const [place, from] of this.#queue) {
      if (place.due) this.#leave(place, from);
      else this.#end(place, from);
    }
    if (!this.#edges.some((edge) => edge.to === 1)) return never;
    return { kind: "graph", nodes: this.#nodes.size + 1, edges: this.#sharedEdges() };
  }

  #sharedEdges(): readonly GraphEdge[] {
    const ways = this.#tracked.flatMap(({ variants }) => variants.map(({ expression }) => expression));
    const members = new Map(ways.map((expression) => [expression, expression] as const));
    const copies = this.#edges.filter(({ expression }) => members.has(expression)).length;
    if (copies <= MAX_COPIES * members.size) return this.#edges;
    for (const expression of members.keys()) members.set(expression, this.#shared(expression));
    return this.#edges.map((edge) => ({ ...edge, expression: members.get(edge.expression) ?? edge.expression }));
  }

  /** Node 0 is the start of the graph, node 1 the end. */
  #node({ due, at, count, skipped, condition }: Place): number {
    const counted = Math.min(count, this.#max ?? this.#min);
    const counts = counted < this.#min && this.#slack < this.#tracked.length;
    const place = { due, at, count: counted, skipped: counts ? skipped : 0, condition };
    const key = `${due}.${at}.${place.count}.${place.skipped}.${formulaKey(condition)}`;
    let node = this.#nodes.get(key);
    if (node === undefined) {
      if (this.#nodes.size > MAX_NODES) {
        throw new GrammarError(
          "the conditions on the properties of this object need too many states; use fewer of them, fewer properties or lower counts",
        );
      }
      node = this.#nodes.size === 0 ? 0 : this.#nodes.size + 1;
      spendEffort(20);
      this.#nodes.set(key, node);
      this.#queue.push([place, node]);
    }
    return node;
  }

  #isLeft(index: number, at: number): boolean {
    return this.#anyOrder ? (at & (1 << index)) === 0 : index >= at;
  }

  #left(at: number): Member[] {
    return this.#anyOrder ? this.#tracked.filter((_, index) => this.#isLeft(index, at)) : this.#tracked.slice(at);
  }

  /** Without further members, nothing is missing. */
  #mayEnd({ at, condition }: Pick<Place, "at" | "condition">): boolean {
    const missing = this.#anyOrder
      ? this.#left(at).some(({ required }) => required)
      : this.#requiredBefore[at]! < this.#requiredBefore.at(-1)!;
    return !missing && (condition === true || this.#without(this.#left(at), condition) === true);
  }

  /** Ends the object, or goes on to another member. */
  #end(place: Place, from: number): void {
    if (place.count >= this.#min && this.#mayEnd(place)) this.#edges.push({ from, to: 1, expression: empty });
    this.#edges.push({ from, to: this.#node({ ...place, due: true }), expression: this.#comma });
  }

  #leave(place: Place, from: number): void {
    if (this.#anyOrder) {
      for (const [index, member] of this.#tracked.entries()) {
        if (this.#isLeft(index, place.at)) this.#write(member, { ...place, at: place.at | (1 << index) }, from);
      }
    } else if (place.at < this.#tracked.length) {
      const member = this.#tracked[place.at]!;
      const at = place.at + 1;
      this.#write(member, { ...place, at }, from);
      if (!member.required) this.#skip(member, { ...place, at }, from);
    }
    if (this.#loose.length > 0) this.#edge(this.#anyLoose, place, from);
    const over = this.#anyOrder ? this.#left(place.at).length === 0 : place.at === this.#tracked.length;
    if (this.#extras !== null && (over || this.#extrasAnywhere)) this.#edge(this.#extras.any, place, from);
  }

  /** `place`: behind the member that is left out. */
  #skip(member: Member, place: Place, from: number): void {
    const skipped = place.skipped + 1;
    const condition = this.#without([member], place.condition);
    if (condition === false || (place.count < this.#min && skipped > this.#slack)) return;
    this.#edges.push({ from, to: this.#node({ ...place, skipped, condition }), expression: empty });
  }

  #without(members: readonly Member[], condition: Formula): Formula {
    if (typeof condition === "boolean") return condition;
    spendEffort(members.length);
    return settled(condition, new Set(members.map(({ name }) => name)), () => false);
  }

  #write({ name, variants }: Member, place: Place, from: number): void {
    for (const { expression, holds } of variants) {
      const condition = settled(place.condition, new Set([name]), (key) => holds.has(key));
      if (condition !== false) this.#edge(expression, { ...place, condition }, from);
    }
  }

  #edge(member: Expression, place: Place, from: number): void {
    if (this.#max !== null && place.count >= this.#max) return;
    const to = this.#node({ ...place, due: false, count: place.count + 1 });
    this.#edges.push({ from, to, expression: member });
  }
}
