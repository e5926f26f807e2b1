// The numbers that the torch trainer keeps for every trained token, beside those of the embedded trainer, which
// test/reference/token-numbers.test.ts checks against an independent computation. Needs a Python with torch and
// transformers, named by FLYWHEEL_TORCH_PYTHON.

import { expect, it } from "vitest";
import { TOKEN_FIELDS } from "../../src/training/gradient/token-numbers.ts";
import { needing, TORCH } from "../support/needs.ts";
import { embedded, OBJECTIVES, run, torchTrainer } from "./torch-harness.ts";

/** Of a number, relative to the larger of 1 and its size. */
const BOUND = 1e-4;

function expectSameNumbers(found: Float32Array, wanted: Float32Array): void {
  expect(found.length).toBe(wanted.length);
  for (const [i, want] of wanted.entries()) {
    const field = TOKEN_FIELDS[i % TOKEN_FIELDS.length]!;
    const what = `row ${Math.floor(i / TOKEN_FIELDS.length)}, ${field}: ${found[i]}, ${want}`;
    if (Number.isNaN(want)) expect(found[i], what).toBeNaN();
    else expect(Math.abs(found[i]! - want), what).toBeLessThanOrEqual(BOUND * Math.max(1, Math.abs(want)));
  }
}

needing(TORCH).describe("numbers per token of the torch trainer", { timeout: 300_000 }, () => {
  it.each(OBJECTIVES)("are those of the embedded trainer, in its order (objective %#)", async (objective) => {
    const wanted = { family: "qwen3", objective, steps: 2, numbers: true } as const;
    const [torch, onnx] = [await run(torchTrainer(), wanted), await embedded(wanted)];
    expect(onnx.numbers.length).toBeGreaterThan(100 * TOKEN_FIELDS.length);
    expectSameNumbers(torch.numbers, onnx.numbers);
    const values = (name: (typeof TOKEN_FIELDS)[number]) =>
      torch.numbers.filter((_, i) => TOKEN_FIELDS[i % TOKEN_FIELDS.length] === name);
    const { kind } = objective;
    if (kind === "policy" && objective.loss.algorithm === "ppo") {
      expect(new Set(values("clipped")).size).toBeGreaterThan(1);
    }
    if (kind === "cross_entropy") expect(values("ratio").every(Number.isNaN)).toBe(true);
    expect(values("gradient").some((value) => value !== 0)).toBe(true);
  });

  it("are the same from two ranks as from one", async () => {
    const wanted = { family: "llama", objective: OBJECTIVES[1]!, steps: 2, numbers: true } as const;
    const [one, two] = [await run(torchTrainer(), wanted), await run(torchTrainer(2), wanted)];
    expectSameNumbers(two.numbers, one.numbers);
  });
});
