// The members of an object as a graph. A node records the members decided so far, how many were written, what remains of
// the condition on them, and whether a member comes next or has just been written.

import { spendEffort } from "../../compile-effort.ts";
import { type Expression, empty, type GraphEdge, never } from "../../expression.ts";
import { GrammarError } from "../../grammar-error.ts";
import { and, atoms, type Formula, formulaKey, has, settled } from "../logic/formula.ts";

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
  readonly condition: Formula;
}

export class ObjectContent {
  readonly #comma: Expression;
  /** Members that the graph itself writes at most once, because other members or the order depend on them. */
  readonly #tracked: readonly Member[];
  /** Optional members in free order. They are kept apart while they are generated (see match/distinct), as extras are. */
  readonly #loose: readonly Member[];
  readonly #extras: Extras | null;
  readonly #condition: Formula;
  readonly #min: number;
  readonly #max: number | null;
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
    this.#loose = anyOrder ? optional : [];
    this.#tracked = members.filter((member) => !this.#loose.includes(member));
    this.#extras = extras;
    this.#condition = and(condition, ...required.map(({ name }) => has(name)));
    // No counting is needed if the required members reach the minimum anyway.
    this.#min = min > required.length ? min : 0;
    this.#max = max !== null && (extras !== null || this.#loose.length > 0 || max < members.length) ? max : null;
    this.#anyOrder = anyOrder && this.#tracked.length <= MAX_UNORDERED;
    this.#extrasAnywhere = demands.extrasAnywhere || anyOrder;
    this.#shared = shared;
  }

  get mayBeEmpty(): boolean {
    return this.#min === 0 && this.#without(this.#tracked, this.#condition) === true;
  }

  /** Whether the graph alone could write a name twice. */
  get mayRepeat(): boolean {
    return this.#extras !== null || this.#loose.length > 0;
  }

  /** Content with at least one member. */
  expression(): Expression {
    const names = this.#tracked.length + this.#loose.length + (this.#extras?.names ?? 0);
    if (names < this.#min) return never;
    this.#node({ due: true, at: 0, count: 0, condition: this.#condition });
    for (const [place, from] of this.#queue) {
      if (place.due) this.#leave(place, from);
      else this.#end(place, from);
    }
    if (!this.#edges.some((edge) => edge.to === 1)) return never;
    return { kind: "graph", nodes: this.#nodes.size + 1, edges: this.#sharedEdges() };
  }

  #sharedEdges(): readonly GraphEdge[] {
    const members = new Map(
      [...this.#tracked, ...this.#loose].flatMap(({ variants }) =>
        variants.map(({ expression }) => [expression, expression] as const),
      ),
    );
    const copies = this.#edges.filter(({ expression }) => members.has(expression)).length;
    if (copies <= MAX_COPIES * members.size) return this.#edges;
    for (const expression of members.keys()) members.set(expression, this.#shared(expression));
    return this.#edges.map((edge) => ({ ...edge, expression: members.get(edge.expression) ?? edge.expression }));
  }

  /** Node 0 is the start of the graph, node 1 the end. */
  #node({ due, at, count, condition }: Place): number {
    const place = { due, at, count: Math.min(count, this.#max ?? this.#min), condition };
    const key = `${due}.${at}.${place.count}.${formulaKey(condition)}`;
    let node = this.#nodes.get(key);
    if (node === undefined) {
      if (this.#nodes.size > MAX_NODES) {
        throw new GrammarError("the conditions on the properties of this object need too many states");
      }
      node = this.#nodes.size === 0 ? 0 : this.#nodes.size + 1;
      spendEffort(20);
      this.#nodes.set(key, node);
      this.#queue.push([place, node]);
    }
    return node;
  }

  #left({ at }: Place): Member[] {
    return this.#tracked.filter((_, index) => (this.#anyOrder ? !(at & (1 << index)) : index >= at));
  }

  /** Ends the object, or goes on to another member. */
  #end(place: Place, from: number): void {
    const rest = this.#without(this.#left(place), place.condition);
    if (place.count >= this.#min && rest === true) this.#edges.push({ from, to: 1, expression: empty });
    this.#edges.push({ from, to: this.#node({ ...place, due: true }), expression: this.#comma });
  }

  #leave(place: Place, from: number): void {
    const left = this.#left(place);
    const next = this.#anyOrder ? left : left.slice(0, 1);
    for (const member of next) {
      const at = this.#anyOrder ? place.at | (1 << this.#tracked.indexOf(member)) : place.at + 1;
      this.#write(member, { ...place, at }, from);
    }
    if (!this.#anyOrder && next.length > 0) {
      const condition = this.#without(next, place.condition);
      const further = left.length - 1 + this.#loose.length + (this.#extras?.names ?? 0);
      if (condition !== false && place.count + further >= this.#min) {
        const to = this.#node({ ...place, at: place.at + 1, condition });
        this.#edges.push({ from, to, expression: empty });
      }
    }
    for (const member of this.#loose) this.#write(member, place, from);
    if (this.#extras !== null && (left.length === 0 || this.#extrasAnywhere)) this.#edge(this.#extras.any, place, from);
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
