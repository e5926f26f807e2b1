// A stage of a pass: the same piece of computation for every layer, in one session that takes the layer as an input.
// One session has one thread pool and one memory arena; a session per layer would have dozens. Each layer is a branch
// of the outermost graph, because the runtime does not pack weights of nested branches. Without packing, products are
// slower, and int4 products are different ones.

import type { Tensor } from "onnxruntime-node";
import { graft, needed } from "../../../graph/graft.ts";
import { type Dim, Graph, type Value } from "../../../graph/graph.ts";
import { equal, ints, reshape } from "../../../graph/ops.ts";
import { type Feeds, floats, GraphSession, int64s, type Outputs, type SessionOptions } from "../../../graph/session.ts";

/** The part of one layer: `results` by output name, computed from `given` by input name. */
export interface Piece {
  graph: Graph;
  results: ReadonlyMap<string, Value>;
  given: ReadonlyMap<string, Value>;
}

export class Stage {
  readonly #session: GraphSession;
  /** What each input is for layers that do not use it. */
  readonly #inputs: ReadonlyMap<string, Tensor>;
  /** Of each layer. */
  readonly #results: readonly (readonly string[])[];

  private constructor(
    session: GraphSession,
    inputs: ReadonlyMap<string, Tensor>,
    results: readonly (readonly string[])[],
  ) {
    this.#session = session;
    this.#inputs = inputs;
    this.#results = results;
  }

  /** One piece per layer. Inputs of the same name have the same shape in all of them. */
  static async create(pieces: readonly Piece[], options: SessionOptions): Promise<Stage> {
    const { graph, inputs } = stageGraph(pieces);
    const results = pieces.map((piece) => [...piece.results.keys()]);
    const empty = new Map(inputs.map((input) => [input.name, emptyTensor(input)]));
    return new Stage(await GraphSession.create(graph, options), empty, results);
  }

  /** `feeds` may contain more than this stage takes, and less where this layer does not use an input. */
  async run(layer: number, feeds: Feeds): Promise<Outputs> {
    const own: Feeds = { [LAYER]: int64s(BigInt64Array.of(BigInt(layer)), [1]) };
    for (const [name, empty] of this.#inputs) own[name] = feeds[name] ?? empty;
    const results = this.#results[layer]!;
    const outputs = await this.#session.run(
      own,
      results.map((name) => outputName(name, layer)),
    );
    return Object.fromEntries(results.map((name) => [name, outputs[outputName(name, layer)]!]));
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

/** Every layer has its own outputs. Those of layers that were not chosen have no rows. */
function stageGraph(pieces: readonly Piece[]): { graph: Graph; inputs: Value[] } {
  const g = new Graph();
  const chosen = g.input(LAYER, [1], "int64");
  const inputs = new Map<string, Value>();
  for (const { results, given } of pieces) {
    const used = needed([...results.values()], given.values());
    for (const [name, value] of given) {
      if (used.has(value) && !inputs.has(name)) inputs.set(name, g.input(name, value.shape, value.dtype));
    }
  }
  for (const [layer, piece] of pieces.entries()) {
    const names = [...piece.results.keys()].map((name) => outputName(name, layer));
    const values = [...piece.results.values()];
    const branch = (results: (sub: Graph) => Value[]) => {
      const sub = g.child();
      sub.outputs.push(...results(sub));
      return sub;
    };
    const attributes = {
      then_branch: branch((sub) => place(sub, piece, inputs)),
      else_branch: branch((sub) => values.map(({ shape }) => nothing(sub, shape))),
    };
    const isChosen = reshape(g, equal(g, chosen, ints(g, [layer])), []);
    g.outputs.push(...g.add("If", [isChosen], values, attributes, "", names));
  }
  return { graph: g, inputs: [...inputs.values()] };
}

/** A result without rows. */
function nothing(g: Graph, shape: readonly Dim[]): Value {
  const sizes = shape.map((dim, i) => (i === 0 || typeof dim !== "number" ? 0 : dim));
  return ownValue(g, g.constant(new Float32Array(0), sizes));
}

/** Without rows where their number is open, else zeros. */
function emptyTensor({ shape, dtype }: Value): Tensor {
  const sizes = shape.map((dim) => (typeof dim === "number" ? dim : 0));
  const size = sizes.reduce((product, each) => product * each, 1);
  return dtype === "int64" ? int64s(new BigInt64Array(size), sizes) : floats(new Float32Array(size), sizes);
}

function place(at: Graph, piece: Piece, inputs: ReadonlyMap<string, Value>): Value[] {
  const given = new Map(
    [...piece.given].flatMap(([name, value]) => (inputs.has(name) ? [[value, inputs.get(name)!]] : [])),
  );
  const results = graft(at, piece.graph, [...piece.results.values()], given);
  return results.map((value) => ownValue(at, value));
}

/** A branch can only return values that it computed itself. */
function ownValue(at: Graph, value: Value): Value {
  return value.graph === at ? value : at.add("Identity", [value], [value])[0]!;
}

const LAYER = "layer";

function outputName(result: string, layer: number): string {
  return `${result}@${layer}`;
}
