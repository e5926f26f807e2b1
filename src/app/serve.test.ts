import { once } from "node:events";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { loadConfig } from "../config/load.ts";
import { lockDataDir, openDataDir } from "../store/data-dir.ts";
import { ModelTable } from "../store/tables/models.ts";
import { type LoadModel, startServer } from "./serve.ts";

it("tells the model whether adapters were trained before, so that it is built for them once", async () => {
  const data = mkdtempSync(join(tmpdir(), "flywheel-serve-"));
  const loadModel = vi.fn<LoadModel>().mockRejectedValue(new Error("told"));
  const toldAtStart = async () => {
    await expect(
      startServer({ ...loadConfig({ env: {} }), port: 0, data, logLevel: "error" }, loadModel),
    ).rejects.toThrow("told");
    return loadModel.mock.lastCall![3];
  };
  const change = async (work: (models: ModelTable) => Promise<void>) => {
    const store = openDataDir(data);
    await work(new ModelTable(store));
    await store.close();
  };
  const names = { owner: "o", entity: "e", project: "p", name: "n", baseModel: "b" };
  await change(async (models) => {
    await models.insert({ id: "m", ...names, loraRank: 8, loraAlpha: 16, nextStep: 0 });
    await models.insertStep("m", 0, null, { folder: "step-0-d", digest: "d", bytes: 1 }, {});
  });
  expect(await toldAtStart()).toBe(false);
  await change((models) => models.insertStep("m", 1, null, { folder: "step-1-d", digest: "d", bytes: 1 }, {}));
  expect(await toldAtStart()).toBe(true);
});

it("refuses a folder or an address of another server before it reads the weights", async () => {
  const data = mkdtempSync(join(tmpdir(), "flywheel-serve-"));
  const loadModel = vi.fn<LoadModel>().mockRejectedValue(new Error("read"));
  const start = (port: number) =>
    startServer({ ...loadConfig({ env: {} }), data, port, logLevel: "error" }, loadModel, [vi.fn()]);
  const unlock = lockDataDir(data);
  await expect(start(0)).rejects.toThrow(/another server is using the data directory/);
  unlock();
  const other = createServer();
  await once(other.listen(0, "127.0.0.1"), "listening");
  await expect(start((other.address() as AddressInfo).port)).rejects.toThrow(/cannot listen on .* it is in use/);
  other.close();
  expect(loadModel).not.toHaveBeenCalled();
  // A start that failed leaves the folder free.
  await expect(start(0)).rejects.toThrow("read");
  await expect(start(0)).rejects.toThrow("read");
});

it("refuses a --storage that it cannot use before it reads the weights or makes anything there", async () => {
  const storage = mkdtempSync(join(tmpdir(), "flywheel-storage-"));
  const loadModel = vi.fn<LoadModel>().mockRejectedValue(new Error("read"));
  const start = (data: string, folder: string) => {
    const options = { data, storage: folder, port: 0, logLevel: "error" as const };
    return startServer({ ...loadConfig({ env: {} }), ...options }, loadModel, [vi.fn()]);
  };
  const [one, other] = [1, 2].map(() => mkdtempSync(join(tmpdir(), "flywheel-serve-")));
  await expect(start(one!, join(storage, "missing"))).rejects.toThrow(/does not exist/);
  expect([loadModel.mock.calls, readdirSync(storage)]).toEqual([[], []]);
  await expect(start(one!, storage)).rejects.toThrow("read");
  await expect(start(other!, storage)).rejects.toThrow(/belongs to another database/);
  expect(loadModel).toHaveBeenCalledTimes(1);
  await expect(start(one!, storage)).rejects.toThrow("read");
});

it("refuses a missing adapter or a duplicate name before it reads the weights", async () => {
  const data = mkdtempSync(join(tmpdir(), "flywheel-serve-"));
  const loadModel = vi.fn<LoadModel>().mockRejectedValue(new Error("read"));
  const start = (...loraModules: string[]) =>
    startServer({ ...loadConfig({ env: {} }), data, port: 0, loraModules, logLevel: "error" }, loadModel);
  await expect(start(`a=${data}`)).rejects.toThrow(`--lora-modules a: there is no adapter_config.json in ${data}`);
  writeFileSync(join(data, "adapter_config.json"), "{}");
  await expect(start(`a=${data}`, `a=${data}`)).rejects.toThrow("--lora-modules has the name a twice");
  expect(loadModel).not.toHaveBeenCalled();
  await expect(start(`a=${data}`, `b=${data}`)).rejects.toThrow("read");
});
