// The engine as servers use it: a real model in its own thread.

import { cpSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { expect, it, vi } from "vitest";
import { fixtureFolder } from "../../test/reference/runner-driver.ts";
import { AdapterSlots } from "../engine/adapter-slots.ts";
import { NoAdapterSlot } from "../model/lora/adapter-host.ts";
import { cacheTypeHere, createEmbeddedEngine } from "./embedded-engine.ts";

it("shares one slot between a step and an operator's adapter, and reports across the thread that it is taken", async () => {
  const folder = fixtureFolder("llama");
  const other = mkdtempSync(join(tmpdir(), "embedded-"));
  for (const file of ["adapter_config.json", "adapter_model.safetensors"])
    cpSync(join(folder, file), join(other, file));
  const weights = readFileSync(join(other, "adapter_model.safetensors"));
  weights.fill(0, weights.length - 64);
  writeFileSync(join(other, "adapter_model.safetensors"), weights);
  const engine = await createEmbeddedEngine({ folder, threads: 1, kvCacheBytes: 2 ** 20, maxLoras: 1 });
  try {
    const slots = new AdapterSlots(engine);
    const lease = await slots.lease(folder);
    await expect(slots.hold(other)).rejects.toSatisfy((error) => error instanceof NoAdapterSlot && error.passing);
    lease.release();
    await slots.hold(other);
    await expect(slots.lease(folder)).rejects.toSatisfy((error) => error instanceof NoAdapterSlot && !error.passing);
    await expect(slots.lease(join(folder, "nothing"))).rejects.not.toBeInstanceOf(NoAdapterSlot);
  } finally {
    await engine.close();
  }
});

it("does not continue with other weights when its thread restarts", async () => {
  const folder = mkdtempSync(join(tmpdir(), "embedded-"));
  cpSync(fixtureFolder("llama"), folder, { recursive: true });
  const faults: string[] = [];
  const onFault = (error: Error) => void faults.push(error.message);
  const threads: Worker[] = [];
  const onThread = (thread: Worker) => void threads.push(thread);
  process.on("worker", onThread);
  const engine = await createEmbeddedEngine({ folder, threads: 1, kvCacheBytes: 2 ** 20, onFault });
  const endThread = () => threads.at(-1)!.terminate();
  try {
    await endThread();
    await engine.loadAdapter(folder); // waits for the new thread, which has the same weights
    const weights = join(folder, "model.safetensors");
    cpSync(weights, `${weights}.new`);
    renameSync(`${weights}.new`, weights);
    faults.length = 0;
    await endThread();
    await expect(engine.loadAdapter(folder)).rejects.toThrow(/could not be restarted/);
    expect(engine.healthy()).toBe(false);
    expect(faults.at(-1)).toBe(
      `the engine thread ended: ${folder}: changed since the server started; restart the server`,
    );
  } finally {
    process.off("worker", onThread);
    await engine.close();
  }
});

it("takes a quarter of the container's memory, not of the machine's", async () => {
  const folder = fixtureFolder("llama");
  const limit = vi.spyOn(process, "constrainedMemory").mockReturnValue(2 ** 18);
  try {
    const engine = await createEmbeddedEngine({ folder, threads: 1 });
    const { maxModelLen } = engine.info;
    await engine.close();
    // 2 layers, keys and values, 2 heads of 16 numbers
    const bytes = (await cacheTypeHere("int8")) === "float16" ? 2 : 4;
    expect(maxModelLen).toBe(2 ** 16 / (2 * 2 * 2 * 16 * bytes));
    await expect(createEmbeddedEngine({ folder, kvCacheBytes: 2 ** 19 })).rejects.toThrow(/memory \(262144 bytes\)/);
    limit.mockReturnValue(0); // no limit is known
    await (await createEmbeddedEngine({ folder, threads: 1, kvCacheBytes: 2 ** 19 })).close();
  } finally {
    limit.mockRestore();
  }
});

it("serves the original context of a model with LongRoPE unless it is asked for more", async () => {
  const folder = fixtureFolder("phi4-mini");
  for (const [maxModelLen, served] of [
    [undefined, 512],
    [4096, 4096],
  ] as const) {
    const engine = await createEmbeddedEngine({ folder, threads: 1, ...(maxModelLen && { maxModelLen }) });
    expect(engine.info.maxModelLen).toBe(served);
    await engine.close();
  }
});
