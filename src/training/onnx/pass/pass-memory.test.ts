import { describe, expect, it } from "vitest";
import { families, fixtureFolder } from "../../../../test/reference/runner-driver.ts";
import { readModelConfig } from "../../../model/checkpoint/model-config.ts";
import { type Keeping, planMicroBatches } from "../packing/pack-plan.ts";
import { longestSequence, passBytes } from "./pass-memory.ts";

const ATTENTION_BLOCK = { float32: null, int8: 16, int4: 16 };

describe.each(families)("%s: the longest sequence that can be trained", (family) => {
  const folder = fixtureFolder(family);
  const config = readModelConfig(folder);

  it.each(["float32", "int8", "int4"] as const)(
    "is the longest one that the trainer accepts, with %s weights",
    (weightType) => {
      for (const megabytes of [0, 1, 2, 5, 20, 50, 500]) {
        const maxBytes = megabytes * 2 ** 20;
        const model = { baseModel: folder, weights: weightType, positionsPerBlock: 16, maxSequenceLength: 5000 };
        const longest = longestSequence({ ...model, activationBytes: maxBytes });
        const bytes = (rows: number, most: number, keeping: Keeping) =>
          passBytes(config, ATTENTION_BLOCK[weightType], rows, most, keeping);
        for (const length of [1, 50, 500, longest - 1, longest, longest + 1, 5000]) {
          if (length < 1 || length > 5000) continue;
          const sequence = {
            index: 0,
            ids: new Int32Array(length),
            predicting: Int32Array.of(),
            targets: Int32Array.of(),
          };
          const plan = () => planMicroBatches([sequence], () => -1, { bytes, maxBytes });
          if (length <= longest) expect(plan()).toHaveLength(1);
          else expect(plan).toThrow("do not fit the memory");
        }
      }
    },
  );
});
