// Loads the packages of the other engines from bench/peers. That folder has its own package.json, so that the service does
// not depend on them.

import { readFileSync } from "node:fs";

/** From bench/dist/bench/contenders/ to bench/peers/. */
const PEERS = new URL("../../../peers/", import.meta.url);

/** Imports a package; the caller knows its type. If it is missing, rejects with the command that installs it. */
export async function loadPeer<T>(name: string): Promise<T> {
  const loader = (await import(new URL("load.mjs", PEERS).href)) as { load: (name: string) => Promise<T> };
  try {
    return await loader.load(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Error(`${name} is not installed: npm ci --prefix bench/peers --ignore-scripts`, { cause: error });
  }
}

/** Version of an installed package, or null. */
export function peerVersion(name: string): string | null {
  try {
    const manifest = readFileSync(new URL(`node_modules/${name}/package.json`, PEERS), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  } catch {
    return null;
  }
}
