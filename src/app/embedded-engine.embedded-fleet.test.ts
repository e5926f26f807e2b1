import { expect, it } from "vitest";
import { fixtureFolder } from "../../test/reference/runner-driver.ts";
import { automaticEngines, cacheTypeHere, createEmbeddedEngines, shares } from "./embedded-engine.ts";

const GIB = 2 ** 30;
const fleet = { readAdapter: () => Promise.reject(new Error("none")), queueTimeoutMs: 1000, onFault: () => {} };
const options = { folder: fixtureFolder("llama"), kvCacheBytes: 2 ** 20, fleet };

it("divides the threads as equally as possible", () => {
  expect(shares(16, 8)).toEqual([2, 2, 2, 2, 2, 2, 2, 2]);
  expect(shares(7, 3)).toEqual([3, 2, 2]);
});

it("chooses the number of engines by threads, the model's size and memory", () => {
  expect(automaticEngines(1, 26e6, 64 * GIB)).toBe(1);
  expect(automaticEngines(2, 26e6, 64 * GIB)).toBe(1);
  expect(automaticEngines(16, 26e6, 64 * GIB)).toBe(8);
  expect(automaticEngines(16, 500e6, 64 * GIB)).toBe(4);
  expect(automaticEngines(64, 7e9, 512 * GIB)).toBe(8);
  expect(automaticEngines(64, 7e9, 64 * GIB)).toBe(1);
});

it("splits the key/value memory, and is a plain engine when there is only one", async () => {
  const one = await createEmbeddedEngines({ ...options, threads: 1, engines: "auto" });
  const two = await createEmbeddedEngines({ ...options, threads: 2, engines: 2 });
  try {
    expect(one.replicas).toBeUndefined();
    expect(two.replicas?.().map(({ name, maxInFlight }) => [name, maxInFlight])).toEqual([
      ["engine 0", 32],
      ["engine 1", 32],
    ]);
    expect([one.info.maxModelLen, two.info.maxModelLen]).toEqual([512, 512]);
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
  const small = createEmbeddedEngines({ ...options, threads: 2, engines: 2, kvCacheBytes: 2 ** 17 });
  expect((await small).info.maxModelLen).toBe((await cacheTypeHere("int8")) === "float16" ? 256 : 128);
  await (await small).close();
});

it("refuses more engines than threads, and closes all when one does not start", async () => {
  await expect(createEmbeddedEngines({ ...options, threads: 2, engines: 3 })).rejects.toThrow(
    "--data-parallel-size 3 is more than the 2 threads that they would share",
  );
  await expect(createEmbeddedEngines({ ...options, threads: 2, engines: 2, maxModelLen: 4096 })).rejects.toThrow(
    /--max-model-len/,
  );
});
