// Counts the work of a compilation, so that a constraint is refused for what it is and not for how busy the machine was:
// the same constraint always gets the same verdict. A compilation is synchronous, so there is one count at a time.

import { GrammarError } from "./grammar-error.ts";

/** Units of roughly 0.1 to 0.2 µs: some seconds. */
const MAX_EFFORT = 20_000_000;

let left = Number.POSITIVE_INFINITY;

/** Does the work, or throws a GrammarError when it takes too much of it. */
export function withinEffort<T>(work: () => T): T {
  left = MAX_EFFORT;
  try {
    return work();
  } finally {
    left = Number.POSITIVE_INFINITY;
  }
}

/** Called wherever a constraint can cause much work. */
export function spendEffort(units: number): void {
  left -= units;
  if (left < 0) {
    throw new GrammarError(
      "the constraint is too complex: it takes too much work to compile; use fewer alternatives or properties, smaller counts, or a property with a constant in each object of a oneOf",
    );
  }
}
