// Adapters of the serving graph as one operation of the native module for each linear layer (native/adapters/lora.c). All adapters lie in
// one memory, each in one piece, and a row says where its adapter begins. So a step with other adapters lays nothing
// out, and a row costs what its own adapter costs.

import { FLYWHEEL, type Graph } from "../../graph/graph.ts";
import { ints } from "../../graph/ops.ts";
import { linearShape, siteShape } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type LinearName, type Site, sitesOf } from "../families/tensor-names.ts";
import type { ServedLora } from "./served-lora.ts";

/** Outputs of a panel of factor B: LORA_PANEL in native/adapters/lora.h. */
export const PANEL = 64;

/** Places in the header of an adapter: LORA_RANK, LORA_SCALE and LORA_FLAGS in native/adapters/lora.h. */
export const HEADER = { rank: 0, scale: 1, flags: 2 };

/** Where the factors of a site lie in an adapter. LoraMap in native/adapters/lora.h says more. */
export interface SitePlace {
  layer: number;
  maps: readonly LinearName[];
  inputs: number;
  /** Of each linear layer. */
  outputs: readonly number[];
  /** Numbers of the adapter before this site, without the header and divided by the rank. */
  place: number;
  /** The flag of the first linear layer. */
  firstFlag: number;
}

export interface AdapterLayout {
  /** Numbers in the header. */
  header: number;
  /** All other numbers, divided by the rank. */
  numbers: number;
  sites: readonly Readonly<Partial<Record<Site, SitePlace>>>[];
}

export function adapterLayout(config: ModelConfig): AdapterLayout {
  let [place, firstFlag] = [0, 0];
  const sites = config.layers.map((ofModel, layer) => {
    const ofLayer: Partial<Record<Site, SitePlace>> = {};
    for (const site of sitesOf(ofModel)) {
      const maps = ofModel.maps[site];
      const { inputs, out } = siteShape(config, layer, site);
      const outputs = maps.map((name) => linearShape(config, name)[0]);
      ofLayer[site] = { layer, maps, inputs, outputs, place, firstFlag };
      place += maps.length * inputs + out;
      firstFlag += maps.length;
    }
    return ofLayer;
  });
  // A multiple of 16, so that factors begin where the header does in the processor's lines of memory.
  return { header: 16 * Math.ceil((HEADER.flags + firstFlag) / 16), numbers: place, sites };
}

/** Graph inputs: lora_factors [numbers], lora_begins int64 [n]: where a row's adapter begins there, -1 = it has none. */
export function kernelLora(g: Graph, config: ModelConfig): ServedLora {
  const layout = adapterLayout(config);
  const factors = g.input("lora_factors", ["factors"]);
  const begins = g.input("lora_begins", ["n"], "int64");
  return {
    adapted(at, layer, site, x, y, rowsOf) {
      const { place, firstFlag, outputs } = layout.sites[layer]![site]!;
      // It adds to y where it lies. In place of the null, fuse.ts puts what is added next.
      const operands = [y, x, factors, null, rowsOf(begins), ints(g, outputs)];
      const attributes = { header: layout.header, place, first_flag: firstFlag };
      return at.add("LoraAdd", operands, [{ shape: y.shape }], attributes, FLYWHEEL)[0]!;
    },
  };
}
