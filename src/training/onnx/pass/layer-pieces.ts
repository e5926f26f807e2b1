// Cuts a decoder layer at its attention into the four pieces that training runs: forward before and after attention,
// and backward after and before it. All come from traces of the model's one definition (model/decoder.ts).
//
// The results of the large products are kept for the backward pass. Norms, rotations and activations are computed again
// from them, which costs little. So the backward pass never multiplies with a forward weight.
//
// Values, all with n rows: x = input of the layer · q, k, v · attended · y = output of the layer · kept.GROUP and
// narrow.SITE = kept results of linear maps · d… = gradient of … · a.SITE and b.GROUP = LoRA factors (lora-sites.ts).

import { gradients } from "../../../graph/grad.ts";
import { Graph, type Value } from "../../../graph/graph.ts";
import { add, concat, reshape, split } from "../../../graph/ops.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { LinearName } from "../../../model/checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { decoderLayer, SITES, type Site } from "../../../model/decoder.ts";
import { type WeightOptions, WeightSource } from "../../../model/weight-source.ts";
import {
  type Factors,
  groupName,
  groupOut,
  siteDeltas,
  siteFactorNames,
  siteFactorShapes,
  siteGroups,
} from "./lora-sites.ts";
import type { Piece } from "./stage.ts";

export interface PieceOptions extends WeightOptions {
  rank: number;
}

/** Input of the last piece: the part of the gradient of x that did not pass through attention. */
export const AROUND_ATTENTION = "dx_around";

export interface LayerPieces {
  before: Piece;
  after: Piece;
}

/** Groups of linear maps whose results the backward pass needs, because they are inputs of a norm or an activation. */
export function keptGroups(config: ModelConfig): Record<"before" | "after", (readonly LinearName[])[]> {
  return {
    before: config.qkNorm ? [["q", "k", "v"]] : [],
    after: config.postNorms ? [["o"], ["gate"], ["up"], ["down"]] : [["o"], ["gate"], ["up"]],
  };
}

export function forwardPieces(checkpoint: Checkpoint, options: PieceOptions, layer: number): LayerPieces {
  const { config } = checkpoint;
  const { graph, given, values } = traceLayer(checkpoint, options, layer, (weights, g, site, x) => {
    const groups = siteGroups[site];
    if (options.weightType === "float32") return groups.map((maps) => weights.site(g, layer, site, x, maps));
    // the input is rounded once for all groups
    const all = weights.site(g, layer, site, x);
    const sizes = groups.map((maps) => groupOut(config, maps));
    return groups.length === 1 ? [all] : split(g, all, 1, sizes);
  });
  const results = (names: readonly string[]) => new Map(names.map((name) => [name, values.get(name)!]));
  const keptNames = (half: "before" | "after") => keptGroups(config)[half].map((maps) => `kept.${groupName(maps)}`);
  const before = results(["q", "k", "v", ...keptNames("before"), "narrow.qkv"]);
  const after = results(["y", ...keptNames("after"), "narrow.o", "narrow.gateUp", "narrow.down"]);
  return { before: { graph, results: before, given }, after: { graph, results: after, given } };
}

export function backwardPieces(checkpoint: Checkpoint, options: PieceOptions, layer: number): LayerPieces {
  const { config } = checkpoint;
  const { graph, given, values } = traceLayer(checkpoint, options, layer, (weights, g, site, x) =>
    siteGroups[site].map((maps) => {
      // a placeholder: the product itself is kept or not needed, only its gradient is computed
      const shape = ["n", groupOut(config, maps)];
      const product = g.add("Identity", [g.input(`product.${groupName(maps)}`, shape)], [{ shape }])[0]!;
      g.defineGradient(product, [x], (at, dy) => [weights.siteGradient(at, layer, site, dy, maps)]);
      return product;
    }),
  );
  const { before: keptBefore, after: keptAfter } = keptGroups(config);
  const kept = [...keptBefore, ...keptAfter].map((maps) => `kept.${groupName(maps)}`);
  for (const name of [...kept, ...SITES.map((site) => `narrow.${site}`)]) given.set(name, values.get(name)!);
  const results = (seeds: Record<string, string>, targets: readonly string[]) => {
    const arriving = Object.entries(seeds).map(([name, seed]) => {
      const value = graph.input(seed, values.get(name)!.shape);
      given.set(seed, value);
      return [values.get(name)!, value] as const;
    });
    const found = gradients(
      graph,
      new Map(arriving),
      targets.map((name) => values.get(name)!),
    );
    return new Map(targets.map((name, i) => [`d${name}`, found[i]!]));
  };
  const factors = (...of: Site[]) => of.flatMap((site) => Object.values(siteFactorNames(site)).flat());
  const after = results({ y: "dy" }, ["x", "attended", ...factors("o", "gateUp", "down")]);
  const before = results({ q: "dq", k: "dk", v: "dv", x: AROUND_ATTENTION }, ["x", ...factors("qkv")]);
  // nothing is trained before the first layer
  if (layer === 0) before.set("dx", given.get(AROUND_ATTENTION)!);
  return { after: { graph, results: after, given }, before: { graph, results: before, given } };
}

interface LayerTrace {
  graph: Graph;
  /** Values that can be fed, by name. */
  given: Map<string, Value>;
  /** All values that have a name. */
  values: Map<string, Value>;
}

function traceLayer(
  checkpoint: Checkpoint,
  options: PieceOptions,
  layer: number,
  products: (weights: WeightSource, g: Graph, site: Site, x: Value) => Value[],
): LayerTrace {
  const { config } = checkpoint;
  const g = new Graph();
  const weights = new WeightSource(g, checkpoint, options);
  const half = config.headDim / 2;
  const x = g.input("x", ["n", config.hiddenSize]);
  const [cos, sin] = [g.input("cos", ["n", half]), g.input("sin", ["n", half])];
  const rows = g.input("rows", ["n", 1], "int64");
  const scale = g.input("lora_scale", []);
  const attended = g.input("attended", ["n", config.numHeads * config.headDim]);
  const factors = new Map(SITES.map((site) => [site, factorInputs(g, config, options.rank, site)]));
  const values = new Map<string, Value>();

  const linear = (at: Graph, site: Site, input: Value) => {
    const { narrow, deltas } = siteDeltas(at, input, factors.get(site)!, scale);
    const parts = products(weights, at, site, input).map((product, i) => add(at, product, deltas[i]!));
    values.set(`narrow.${site}`, narrow);
    for (const [i, maps] of siteGroups[site].entries()) values.set(`kept.${groupName(maps)}`, parts[i]!);
    return parts.length === 1 ? parts[0]! : concat(at, parts, 1);
  };
  const attention = (at: Graph, q: Value, k: Value, v: Value) => {
    const flat = (heads: Value) => reshape(at, heads, ["n", (heads.shape[1] as number) * config.headDim]);
    values.set("q", flat(q)).set("k", flat(k)).set("v", flat(v));
    return attended;
  };
  const onward = (_: Graph, value: Value) => value;
  const parts = { ...weights.norms(layer), cos, sin, linear, attention, onward };
  const { x: y } = decoderLayer(g, config, parts, x, rows);
  values.set("y", y);
  const given = new Map(g.inputs.map((input) => [input.name, input]));
  for (const [name, value] of given) values.set(name, value);
  return { graph: g, given, values };
}

function factorInputs(g: Graph, config: ModelConfig, rank: number, site: Site): Factors<Value> {
  const [names, shapes] = [siteFactorNames(site), siteFactorShapes(config, rank, site)];
  return { a: g.input(names.a, shapes.a), b: names.b.map((name, i) => g.input(name, shapes.b[i]!)) };
}
