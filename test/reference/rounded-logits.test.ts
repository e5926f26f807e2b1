// Serving with rounded weights, for every family. The logits are those of a float32 model with exactly these weights, up to the
// rounding of activations, and stay near those that transformers computed from the weights before rounding.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { blocksFrom, chunk, families, fixtureFolder, openRunner, Reference, runAlone } from "./runner-driver.ts";
import { writeWidened } from "./widened-checkpoint.ts";

/** How far rounding may move the logits of models this small, relative to their spread; unrelated logits are at least 1 away. */
const LIMITS = {
  int8: { ofActivations: 0.05, ofWeights: 0.1 },
  int4: { ofActivations: 0.1, ofWeights: 0.75 },
} as const;

/** Logits of a prompt without an adapter and of a sequence with one. */
async function logitsOf(folder: string, weightType: WeightType, reference: Reference): Promise<Float32Array[]> {
  const runner = await openRunner(folder, { weightType });
  const { slot } = await runner.adapters.load(folder);
  const logits: Float32Array[] = [];
  for (const [name, adapterSlot] of [["ids.2", 0] as const, ["train.ids", slot] as const]) {
    const ids = reference.ids(name);
    const blocks = blocksFrom(0, ids.length, runner.positionsPerBlock);
    logits.push(await runAlone(runner, chunk(ids, 0, blocks, { adapterSlot })));
  }
  await runner.close();
  return logits;
}

describe.each(families)("%s", (family) => {
  it.each(["int8", "int4"] as const)("serves %s weights", async (type) => {
    const widened = mkdtempSync(join(tmpdir(), "widened-"));
    const reference = new Reference(family);
    try {
      writeWidened(fixtureFolder(family), type, widened);
      const got = await logitsOf(fixtureFolder(family), type, reference);
      const exact = await logitsOf(widened, "float32", reference);
      const unrounded = ["logits.2", "lora.logits"].map((name) => reference.floats(name));
      const vocab = got[0]!.length / reference.ids("ids.2").length;
      for (const [i, logits] of got.entries()) {
        expect(distance(logits, exact[i]!, vocab)).toBeLessThan(LIMITS[type].ofActivations);
        expect(distance(logits, unrounded[i]!, vocab)).toBeLessThan(LIMITS[type].ofWeights);
      }
    } finally {
      reference.close();
      rmSync(widened, { recursive: true });
    }
  });
});

/** ||a - b|| / ||b|| over all rows, each without its mean, which changes no probability. */
function distance(a: Float32Array, b: Float32Array, vocab: number): number {
  expect(a).toHaveLength(b.length);
  let [difference, size] = [0, 0];
  for (let at = 0; at < b.length; at += vocab) {
    const [mine, theirs] = [a, b].map((all) => centred(all.subarray(at, at + vocab)));
    for (const [i, value] of theirs!.entries()) {
      difference += (mine![i]! - value) ** 2;
      size += value ** 2;
    }
  }
  return Math.sqrt(difference / size);
}

function centred(row: Float32Array): Float32Array {
  const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
  return row.map((value) => value - mean);
}
