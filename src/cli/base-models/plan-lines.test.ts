// What --estimate says, beside what a server with the same options does.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { writeAsGguf } from "../../../test/gguf/write-fixture.ts";
import { fixtureFolder } from "../../../test/reference/runner-driver.ts";
import { createEmbeddedEngine } from "../../app/embedded-engine.ts";
import { type MemoryPlan, memoryPlan } from "../../app/memory-plan.ts";
import { contextText, memoryText } from "./plan-lines.ts";

const options: Parameters<typeof memoryPlan>[1] = {
  dtype: "int8",
  kvCacheMemoryBytes: 2 ** 20,
  maxModelLen: null,
  blockSize: 16,
  dataParallelSize: 1,
  threads: 1,
};

it.each([undefined, 64, 200])(
  "states the context and the cache of a LongRoPE model with --max-model-len %s",
  async (maxModelLen) => {
    const folder = fixtureFolder("phi4-mini");
    const plan = await memoryPlan(folder, { ...options, maxModelLen: maxModelLen ?? null });
    const given = { folder, threads: 1, kvCacheBytes: 2 ** 20, ...(maxModelLen && { maxModelLen }) };
    const engine = await createEmbeddedEngine(given);
    const { maxModelLen: served, cacheTokens } = engine.info;
    await engine.close();
    expect({ servedTokens: plan.servedTokens, cacheTokens: plan.cacheTokens }).toEqual({
      servedTokens: served,
      cacheTokens,
    });
    const factors = served > plan.usualTokens ? "long" : "short";
    if (served < plan.contextTokens) expect(contextText(plan)).toContain(`with the ${factors} factors of LongRoPE`);
  },
);

it.each([
  [{ maxModelLen: 4096 }, /^--max-model-len 4096 is more than the model's \d+ positions$/],
  [{ kvCacheMemoryBytes: 100 }, /^--kv-cache-memory-bytes 100 is less than one block of this model/],
  [
    { maxModelLen: 192, kvCacheMemoryBytes: 40_000 },
    /^--max-model-len 192 does not fit the KV cache \((64|128) tokens\)/,
  ],
])("refuses what the server refuses: %o", async (given, reason) => {
  const folder = fixtureFolder("llama");
  await expect(memoryPlan(folder, { ...options, ...given })).rejects.toThrow(reason);
  const { maxModelLen, kvCacheMemoryBytes: kvCacheBytes = 2 ** 20 } = given as Partial<typeof options>;
  await expect(
    createEmbeddedEngine({ folder, threads: 1, kvCacheBytes: kvCacheBytes!, ...(maxModelLen && { maxModelLen }) }),
  ).rejects.toThrow(reason);
});

it("states no factors for other models", async () => {
  expect(contextText(await memoryPlan(fixtureFolder("llama"), options))).toMatch(
    /^\d+ tokens( of the model's \d+)? \(--max-model-len\)$/,
  );
});

it("counts the embedding as the file stores it", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "memory-plan-"));
  try {
    const folder = fixtureFolder("llama");
    const plans = (["f32", "q8_0"] as const).map((type) =>
      memoryPlan(writeAsGguf(folder, join(scratch, `${type}.gguf`), type), options),
    );
    const [wide, narrow] = await Promise.all(plans);
    const values = 256 * 64;
    expect(wide!.weightBytes).toBe((await memoryPlan(folder, options)).weightBytes);
    expect(wide!.weightBytes - narrow!.weightBytes).toBe(values * (4 - 34 / 32));
  } finally {
    rmSync(scratch, { recursive: true });
  }
});

it("counts the linear maps once for each engine, and twice while they load", async () => {
  const plans = [1, 2].map((dataParallelSize) => memoryPlan(fixtureFolder("llama"), { ...options, dataParallelSize }));
  const [one, two] = (await Promise.all(plans)) as [MemoryPlan, MemoryPlan];
  expect(two.weightBytes - one.weightBytes).toBe(one.mapBytes);
  expect(two.loadingBytes - one.loadingBytes).toBe(2.25 * one.mapBytes);
  expect(two.servingBytes - one.servingBytes).toBe(1.25 * one.mapBytes + one.stepBytes);
  expect(memoryText({ ...one, machineBytes: one.totalBytes })).toMatch(/does not fit: try --dtype int4/);
  expect(memoryText({ ...one, machineBytes: 2 * one.totalBytes })).toMatch(/: fits$/);
});
