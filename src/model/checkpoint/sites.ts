// The linear maps of a layer. The decoder knows four sites: places where maps with the same input meet. A checkpoint
// stores one or more maps per site, and adapters change stored maps.

/** Maps that a layer may store, in the order in which adapters list them. */
export const LINEAR_NAMES = ["q", "k", "v", "qkv", "o", "gate", "up", "gate_up", "down"] as const;
export type LinearName = (typeof LINEAR_NAMES)[number];

export const SITES = ["qkv", "o", "gateUp", "down"] as const;
export type Site = (typeof SITES)[number];

/** The stored maps of each site, in order of their outputs. */
export type SiteMaps = Readonly<Record<Site, readonly LinearName[]>>;

export const SEPARATE_MAPS: SiteMaps = { qkv: ["q", "k", "v"], o: ["o"], gateUp: ["gate", "up"], down: ["down"] };
export const FUSED_MAPS: SiteMaps = { qkv: ["qkv"], o: ["o"], gateUp: ["gate_up"], down: ["down"] };

/** The sites of a layer that have maps. */
export function sitesOf({ maps }: { maps: SiteMaps }): Site[] {
  return SITES.filter((site) => maps[site].length > 0);
}

/** The stored maps of a layer, in the order of LINEAR_NAMES. */
export function mapsOf({ maps }: { maps: SiteMaps }): LinearName[] {
  const stored = new Set(Object.values(maps).flat());
  return LINEAR_NAMES.filter((name) => stored.has(name));
}
