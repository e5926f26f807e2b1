// Any combination of keywords gets one verdict, however often it is asked for, and only valid outputs. A schema is called
// unsatisfiable only if no value that the search knows satisfies it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeRandom } from "./random-judge.ts";
import { type Draft, randomSchema } from "./random-schemas.ts";

const SCHEMAS = 60;

test.each<Draft>(["2020-12", "7"])(
  "random schemas of draft %s",
  (draft) => {
    let generated = 0;
    fc.assert(
      fc.property(randomSchema(draft), fc.nat(1000), (schema, seed) => {
        if (judgeRandom(schema, seed) === "generated") generated++;
      }),
      { numRuns: SCHEMAS },
    );
    expect(generated).toBeGreaterThan(SCHEMAS / 2);
  },
  300_000,
);
