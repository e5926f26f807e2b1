// Cuts a decoder layer at its attention into the four pieces that training runs: forward before and after attention,
// and backward after and before it. All come from traces of the model's one definition (model/decoder.ts).
//
// The results of the large products are kept for the backward pass. Norms, rotations and activations are computed again
// from them, which costs little. So the backward pass never multiplies with a forward weight.
//
// Values, all with n rows: x = input of the layer · q, k, v · attended · y = output of the layer · kept.GROUP and
// narrow.SITE = kept results of linear layers · d… = gradient of … · a.SITE and b.GROUP = LoRA factors (lora-sites.ts).

import { gradients } from "../../../graph/grad.ts";
import { type Dim, Graph, type Value } from "../../../graph/graph.ts";
import { add, concat, reshape, split } from "../../../graph/ops.ts";
import type { Checkpoint } from "../../../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { decoderLayer, type Heads, turnedHeads } from "../../../model/decoder.ts";
import { everyExpert } from "../../../model/expert-rows.ts";
import type { ExpertParts } from "../../../model/experts.ts";
import type { ExpertsConfig } from "../../../model/families/family.ts";
import { type LinearName, type Site, sitesOf } from "../../../model/families/tensor-names.ts";
import { gatedMlp, type MlpLinear, type MlpSite } from "../../../model/mlp.ts";
import { rotaryWidth } from "../../../model/rotary-table.ts";
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

// The experts of a layer. Their weights and the router's stay as they are: only gradients with respect to their inputs pass
// through them. The results of their products are kept for the backward pass.

const KEPT_OF_EXPERTS = ["kept.router", "kept.experts.gateUp", "kept.experts.down"];

/** The products of a layer's experts, in one direction. */
type ExpertProducts = (
  config: ModelConfig,
  weights: WeightSource,
  layer: number,
  experts: ExpertsConfig,
) => {
  router: ExpertParts["router"];
  /** x and bounds as for ExpertParts.mlp. */
  linear(g: Graph, site: MlpSite, x: Value, bounds: readonly Value[]): Value;
};

const forwardExperts: ExpertProducts = (_, weights, layer) => ({
  router: (g, x) => weights.router(g, layer, x),
  linear: (g, site, x, bounds) =>
    everyExpert(g, x, bounds, (at, expert, rows) => weights.expertSite(at, layer, expert, site, rows)),
});

const backwardExperts: ExpertProducts = ({ hiddenSize }, weights, layer, experts) => ({
  router: (g, x) =>
    placeholder(g, "router", ["n", experts.count], x, (at, dy) => weights.routerGradient(at, layer, dy)),
  linear: (g, site, x, bounds) => {
    const shape = ["choices", site === "down" ? hiddenSize : 2 * experts.intermediateSize];
    return placeholder(g, `experts.${site}`, shape, x, (at, dy) =>
      everyExpert(at, dy, bounds, (to, expert, rows) => weights.expertSiteGradient(to, layer, expert, site, rows)),
    );
  },
});

/** Experts with these products, which get their names in `values`. */
function trainedExperts(
  { activation }: ModelConfig,
  experts: ExpertsConfig,
  products: ReturnType<ExpertProducts>,
  values: Map<string, Value>,
): ExpertParts {
  const named = (name: string, value: Value): Value => {
    values.set(`kept.${name}`, value);
    return value;
  };
  const sizes = { activation, intermediateSize: experts.intermediateSize };
  return {
    config: experts,
    router: (g, x) => named("router", products.router(g, x)),
    mlp: (g, x, bounds) => {
      const linear: MlpLinear = (at, site, value) => named(`experts.${site}`, products.linear(at, site, value, bounds));
      return gatedMlp(g, sizes, linear, x);
    },
  };
}

/** A product in the trace of the backward pass. It is kept or not needed: only its gradient is computed. */
function placeholder(
  g: Graph,
  name: string,
  shape: readonly Dim[],
  x: Value,
  gradient: (at: Graph, dy: Value) => Value,
): Value {
  const product = g.add("Identity", [g.input(`product.${name}`, shape)], [{ shape }])[0]!;
  g.defineGradient(product, [x], (at, dy) => [gradient(at, dy)]);
  return product;
}

export interface PieceOptions extends WeightOptions {
  rank: number;
}

/** Input of the last piece: the part of the gradient of x that did not pass through attention. */
export const AROUND_ATTENTION = "dx_around";

export interface LayerPieces {
  before: Piece;
  after: Piece;
}

/** Groups of linear layers whose results the backward pass needs, because they are inputs of a norm or an activation. */
export function keptGroups(config: ModelConfig, layer: number): Record<"before" | "after", (readonly LinearName[])[]> {
  const groups = (site: Site) => siteGroups(config, layer, site);
  return {
    before: config.qkNorm === "none" ? [] : [...groups("qkv")],
    after: [...groups("o"), ...groups("gateUp"), ...(config.norms.mlpPost === null ? [] : groups("down"))],
  };
}

export function forwardPieces(checkpoint: Checkpoint, options: PieceOptions, layer: number): LayerPieces {
  const { config } = checkpoint;
  const products = (weights: WeightSource, g: Graph, site: Site, x: Value) => {
    const groups = siteGroups(config, layer, site);
    if (options.weightType === "float32") return groups.map((maps) => weights.site(g, layer, site, x, maps));
    // the input is rounded once for all groups
    const all = weights.site(g, layer, site, x);
    const sizes = groups.map((maps) => groupOut(config, maps));
    return groups.length === 1 ? [all] : split(g, all, 1, sizes);
  };
  const { graph, given, values } = traceLayer(checkpoint, options, layer, products, forwardExperts);
  const results = (names: readonly string[]) => new Map(names.map((name) => [name, values.get(name)!]));
  const keptNames = (half: "before" | "after") => keptNamesOf(config, layer)[half];
  const before = results(["q", "k", "v", ...keptNames("before"), "narrow.qkv"]);
  const narrowAfter = sitesAfter(config, layer).map((site) => `narrow.${site}`);
  const after = results(["y", ...keptNames("after"), ...narrowAfter]);
  return { before: { graph, results: before, given }, after: { graph, results: after, given } };
}

export function backwardPieces(checkpoint: Checkpoint, options: PieceOptions, layer: number): LayerPieces {
  const { config } = checkpoint;
  const products = (weights: WeightSource, g: Graph, site: Site, x: Value) =>
    siteGroups(config, layer, site).map((maps) => {
      const shape = ["n", groupOut(config, maps)];
      return placeholder(g, groupName(maps), shape, x, (at, dy) => weights.siteGradient(at, layer, site, dy, maps));
    });
  const { graph, given, values } = traceLayer(checkpoint, options, layer, products, backwardExperts);
  const kept = Object.values(keptNamesOf(config, layer)).flat();
  const narrow = sitesOf(config.layers[layer]!).map((site) => `narrow.${site}`);
  for (const name of [...kept, ...narrow]) given.set(name, values.get(name)!);
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
  const factors = (of: readonly Site[]) =>
    of.flatMap((site) => Object.values(siteFactorNames(config, layer, site)).flat());
  const after = results({ y: "dy" }, ["x", "attended", ...factors(sitesAfter(config, layer))]);
  const before = results({ q: "dq", k: "dk", v: "dv", x: AROUND_ATTENTION }, ["x", ...factors(["qkv"])]);
  // nothing is trained before the first layer
  if (layer === 0) before.set("dx", given.get(AROUND_ATTENTION)!);
  return { after: { graph, results: after, given }, before: { graph, results: before, given } };
}

/** Names of the values that the backward pass needs. */
function keptNamesOf(config: ModelConfig, layer: number): Record<"before" | "after", string[]> {
  const { before, after } = keptGroups(config, layer);
  const names = (groups: readonly (readonly LinearName[])[]) => groups.map((maps) => `kept.${groupName(maps)}`);
  const experts = config.layers[layer]!.experts === null ? [] : KEPT_OF_EXPERTS;
  return { before: names(before), after: [...names(after), ...experts] };
}

/** The sites after attention. */
function sitesAfter(config: ModelConfig, layer: number): Site[] {
  return sitesOf(config.layers[layer]!).filter((site) => site !== "qkv");
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
  expertProducts: ExpertProducts,
): LayerTrace {
  const { config } = checkpoint;
  const g = new Graph();
  const weights = new WeightSource(g, checkpoint, options);
  const { rope: spec, experts: expertsConfig } = config.layers[layer]!;
  const x = g.input("x", ["n", config.hiddenSize]);
  const angles = (name: string, width: number) => g.input(name, ["n", width]);
  const width = spec === null ? 0 : rotaryWidth(spec, config.headDim);
  const rope = spec === null ? null : { cos: angles("cos", width), sin: angles("sin", width) };
  const rows = g.input("rows", ["n", 1], "int64");
  const scale = g.input("lora_scale", []);
  const attended = g.input("attended", ["n", config.numHeads * config.headDim]);
  const factors = new Map(
    sitesOf(config.layers[layer]!).map((site) => [site, factorInputs(g, config, options.rank, layer, site)]),
  );
  const values = new Map<string, Value>();

  const linear = (at: Graph, site: Site, input: Value) => {
    const { narrow, deltas } = siteDeltas(at, input, factors.get(site)!, scale);
    const parts = products(weights, at, site, input).map((product, i) => add(at, product, deltas[i]!));
    values.set(`narrow.${site}`, narrow);
    for (const [i, maps] of siteGroups(config, layer, site).entries()) values.set(`kept.${groupName(maps)}`, parts[i]!);
    return parts.length === 1 ? parts[0]! : concat(at, parts, 1);
  };
  const attention = (at: Graph, heads: Heads) => {
    const flat = (x: Value) => reshape(at, x, ["n", (x.shape[1] as number) * config.headDim]);
    const [q, k, v] = turnedHeads(at, config, heads);
    values.set("q", flat(q)).set("k", flat(k)).set("v", flat(v));
    return attended;
  };
  const onward = (_: Graph, value: Value) => value;
  const experts =
    expertsConfig === null
      ? null
      : trainedExperts(config, expertsConfig, expertProducts(config, weights, layer, expertsConfig), values);
  const parts = { norms: weights.norms(layer), rope, linear, experts, attention, onward };
  const y = decoderLayer(g, config, parts, x, rows);
  values.set("y", y);
  const given = new Map(g.inputs.map((input) => [input.name, input]));
  for (const [name, value] of given) values.set(name, value);
  return { graph: g, given, values };
}

function factorInputs(g: Graph, config: ModelConfig, rank: number, layer: number, site: Site): Factors<Value> {
  const [names, shapes] = [siteFactorNames(config, layer, site), siteFactorShapes(config, rank, layer, site)];
  return { a: g.input(names.a, shapes.a), b: names.b.map((name, i) => g.input(name, shapes.b[i]!)) };
}
