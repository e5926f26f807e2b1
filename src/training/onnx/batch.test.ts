import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { BatchSequence } from "../contract.ts";
import { readBatch } from "./batch.ts";

async function read(sequence: BatchSequence) {
  const folder = mkdtempSync(join(tmpdir(), "batch-"));
  try {
    writeFileSync(join(folder, "batch.jsonl"), `${JSON.stringify(sequence)}\n`);
    return (await readBatch(join(folder, "batch.jsonl")))[0]!;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it("reads trained positions with the log-probabilities of the sampler, limited to valid ones", async () => {
  const { predicting, sampler } = await read({
    ids: [1, 2, 3, 4, 5, 6, 7],
    mask: [0, 0, 1, 1, 1, 1, 1],
    oldLogprobs: [null, null, -0.25, -1e308, 1e308, 1e-7, null],
    ...{ advantage: 1, weight: 1, group: -1 },
  });
  expect([...predicting]).toEqual([1, 2, 3, 4, 5]);
  expect([...sampler]).toEqual([-0.25, -9999, 0, 0, Number.NaN]);
});
