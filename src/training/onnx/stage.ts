// A stage of a pass: the same piece of computation for every layer, all in one session; which layer is an input. One
// session has one pool of threads and one arena of memory, where a session per layer would have dozens. Weights are
// initializers of the branch that uses them, so the runtime packs them for its kernels.

import { graft, needed } from "../../graph/graft.ts";
import { Graph, type Value } from "../../graph/graph.ts";
import { bools, type Feeds, GraphSession, type Outputs, type SessionOptions } from "../../graph/session.ts";

/** What a layer contributes: `results` by output name, computed from `given` by input name. */
export interface Piece {
  graph: Graph;
  results: ReadonlyMap<string, Value>;
  given: ReadonlyMap<string, Value>;
}

export class Stage {
  private readonly session: GraphSession;
  private readonly inputs: readonly string[];
  private readonly bits: number;

  private constructor(session: GraphSession, inputs: readonly string[], bits: number) {
    this.session = session;
    this.inputs = inputs;
    this.bits = bits;
  }

  /** One piece per layer; their inputs and results are the same, up to sizes known at run time. */
  static async create(pieces: readonly Piece[], options: SessionOptions): Promise<Stage> {
    const { graph, inputs, bits } = stageGraph(pieces);
    return new Stage(await GraphSession.create(graph, options), inputs, bits);
  }

  /** `feeds` may hold more than this stage takes. */
  run(layer: number, feeds: Feeds): Promise<Outputs> {
    const own: Feeds = {};
    for (const name of this.inputs) own[name] = feeds[name]!;
    for (let bit = 0; bit < this.bits; bit++) own[bitName(bit)] = bools(Uint8Array.of((layer >> bit) & 1), []);
    return this.session.run(own);
  }

  async close(): Promise<void> {
    await this.session.close();
  }
}

function stageGraph(pieces: readonly Piece[]): { graph: Graph; inputs: string[]; bits: number } {
  const g = new Graph();
  const bits = Math.ceil(Math.log2(pieces.length));
  const chosen = Array.from({ length: bits }, (_, bit) => g.input(bitName(bit), [], "bool"));
  const inputs = new Map<string, Value>();
  for (const { results, given } of pieces) {
    const used = needed([...results.values()], given.values());
    for (const [name, value] of given) {
      if (used.has(value) && !inputs.has(name)) inputs.set(name, g.input(name, value.shape, value.dtype));
    }
  }
  const names = [...pieces[0]!.results.keys()];
  /** Results, in `at`, of the layers first .. first + 2^bit - 1. */
  const build = (at: Graph, first: number, bit: number): Value[] => {
    if (bit === 0) return place(at, pieces[first]!, inputs);
    const second = first + 2 ** (bit - 1);
    if (second >= pieces.length) return build(at, first, bit - 1);
    const branch = (from: number) => {
      const sub = at.child();
      sub.outputs.push(...build(sub, from, bit - 1));
      return sub;
    };
    const attributes = { then_branch: branch(second), else_branch: branch(first) };
    return at.add("If", [chosen[bit - 1]!], [...pieces[0]!.results.values()], attributes, "", at === g ? names : []);
  };
  if (bits > 0) g.outputs.push(...build(g, 0, bits));
  else for (const [i, value] of build(g, 0, 0).entries()) g.output(names[i]!, value);
  return { graph: g, inputs: [...inputs.keys()], bits };
}

function place(at: Graph, piece: Piece, inputs: ReadonlyMap<string, Value>): Value[] {
  const given = new Map(
    [...piece.given].flatMap(([name, value]) => (inputs.has(name) ? [[value, inputs.get(name)!]] : [])),
  );
  const results = graft(at, piece.graph, [...piece.results.values()], given);
  // a branch can only give out what it computed itself
  return results.map((value) => (value.graph === at ? value : at.add("Identity", [value], [value])[0]!));
}

function bitName(bit: number): string {
  return `layer_bit.${bit}`;
}
