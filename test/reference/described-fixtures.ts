// Fixtures as the server describes them to the GPU process, for the Python that compares its decoder with them
// (trainer/tests/gpu_families.py).

import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { describeModel } from "../../src/model/describe.ts";
import { locatePeft } from "../../src/model/lora/peft.ts";
import { type Family, families } from "./runner-driver.ts";

/** These the GPU process does not run. */
const REFUSED: readonly Family[] = ["gpt2", "qwen3-moe", "qwen3-moe-plain"];
/** Beyond the original context of phi4-mini, where it takes other frequencies. */
export const LONG = 4096;

/** `folder`: of the fixture. Its adapter is for the usual context only. */
export function described(folder: string, context = 512) {
  const checkpoint = openCheckpoint(folder);
  try {
    const adapter = context === LONG ? null : locatePeft(folder, checkpoint.config);
    return { folder, ...describeModel(checkpoint, context), adapter };
  } finally {
    checkpoint.close();
  }
}

export function describedFamilies(folderOf: (family: Family) => string) {
  const served = families.filter((family) => !REFUSED.includes(family));
  return Object.fromEntries(served.map((family) => [family, described(folderOf(family))]));
}
