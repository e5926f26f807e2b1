// The GPU process without a GPU: its decoder beside the reference numbers of every family, its sampler beside the
// server's, and its step loop beside itself. Needs a Python with torch, named by FLYWHEEL_TORCH_PYTHON.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { encodeFrame } from "../../src/engine/gpu/frames.ts";
import { described, describedFamilies, LONG } from "../reference/described-fixtures.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";
import { needing, TORCH } from "../support/needs.ts";
import { folder, PACKAGE, python } from "./torch-harness.ts";

/** Of log-probabilities. */
const TOLERANCE = 2e-5;
async function script(name: string, given: object, ...args: string[]): Promise<string> {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(given));
  return python(join(PACKAGE, "tests", `${name}.py`), file, ...args);
}

needing(TORCH).describe("the GPU process", { timeout: 600_000 }, () => {
  it("computes the reference logits of every family, in equal bits whatever the batch", async () => {
    const given = describedFamilies(fixtureFolder);
    const found = JSON.parse(
      await script("gpu_families", { ...given, long: described(fixtureFolder("phi4-mini"), LONG) }),
    );
    expect(found.long.long).toBeLessThan(TOLERANCE);
    for (const family of Object.keys(given)) {
      const { prompts, mixed, plain, ...rest } = found[family];
      expect(Math.max(prompts, mixed, plain), family).toBeLessThan(TOLERANCE);
      expect(rest, family).toEqual({
        "bits of single tokens": true,
        "bits beside an adapter": true,
        greedy: true,
      });
    }
  });

  it("chooses the tokens that the server's sampler chooses", async () => {
    const found = JSON.parse(
      await python(join(PACKAGE, "tests", "gpu_sampler.py"), join(PACKAGE, "tests", "sampler-vectors.json")),
    );
    expect(found.checked).toBeGreaterThan(100);
    expect(found.wrong).toEqual([]);
    expect(found.logprobs).toBeLessThan(1e-6);
  });

  it("reads the server's frames, and refuses what is none", async () => {
    const file = join(folder, "frame");
    const header = { type: "masks", step: 3, text: "ä" };
    const bits = { values: Int32Array.of(1, -2, 3, 4, 5, 6), shape: [2, 3] };
    const arrays = { rows: Uint32Array.of(7, 2 ** 32 - 1), bits, none: new Int32Array(0), small: Float32Array.of(0.5) };
    writeFileSync(file, Buffer.concat(encodeFrame(header, arrays)));
    const found = JSON.parse(await python(join(PACKAGE, "tests", "gpu_frames.py"), file, String(Date.now())));
    const rows = [7, 2 ** 32 - 1];
    expect(found).toMatchObject({
      header,
      arrays: {
        rows,
        bits: [
          [1, -2, 3],
          [4, 5, 6],
        ],
        none: [],
        small: [0.5],
      },
    });
    expect(found.refused).toBeGreaterThan(found.changes / 4);
  });

  it("gives a request the same bits alone and among others, with little memory and late masks", async () => {
    const seeds = ["3", String(Math.floor(Math.random() * 1e6))];
    const lines = (await script("gpu_steps", { qwen3: described(fixtureFolder("qwen3")) }, ...seeds))
      .trim()
      .split("\n");
    const found = lines.map((line) => JSON.parse(line));
    expect(found[0].preemptions).toBeGreaterThan(0);
    for (const { seed, rows, tokens, prompts, preferences, faults } of found) {
      expect({ rows, tokens, prompts, preferences, faults }, `seed ${seed}`).toEqual({
        ...{ rows: true, tokens: true, prompts: true, preferences: true },
        faults: true,
      });
    }
  });
});
