// The algorithms that a job can name. To add one, add a file beside this one and a line here.

import { cispo } from "./cispo.ts";
import type { Algorithm } from "./contract.ts";
import { ppo } from "./ppo.ts";

const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map(
  [cispo, ppo].map((algorithm) => [algorithm.name, algorithm]),
);

export const ALGORITHM_NAMES: readonly string[] = [...ALGORITHMS.keys()];

export function algorithmNamed(name: string): Algorithm {
  const algorithm = ALGORITHMS.get(name);
  if (!algorithm) throw new Error(`unknown algorithm "${name}"; known: ${ALGORITHM_NAMES.join(", ")}`);
  return algorithm;
}
