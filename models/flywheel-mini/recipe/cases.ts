// The held-out cases to score, drawn from the generator's held-out split.

import type { TestCase } from "./hand-cases.ts";
import { drawOf, scored } from "./tasks/families.ts";
import { Rng } from "./tasks/rng.ts";

/** `perTask` held-out cases of every scored family, deterministic for a seed. */
export function heldOutCases(seed: string, perTask: number): TestCase[] {
  const cases: TestCase[] = [];
  for (const [task, make] of Object.entries(scored)) {
    for (let index = 0; index < perTask; index++) {
      const made = drawOf(make, { rng: new Rng(`${seed}/case/${task}/${index}`), split: "heldout" });
      cases.push({ id: `${task}-${index}`, task, source: "held-out", conversation: made });
    }
  }
  return cases;
}
