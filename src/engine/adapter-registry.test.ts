import { describe, expect, it } from "vitest";
import { FakeAdapters } from "../../test/fakes/fake-adapters.ts";
import { AdapterRegistry } from "./adapter-registry.ts";

function setup(maxLoras = 2) {
  const faults: unknown[] = [];
  const host = new FakeAdapters(maxLoras);
  const registry = new AdapterRegistry(
    host,
    (work) => work(),
    (error) => faults.push(error),
  );
  return { faults, host, registry };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("AdapterRegistry", () => {
  it("serves the base model in slot 0 and loaded versions in theirs", async () => {
    const { registry } = setup();
    const red = await registry.load("red");
    expect(red).toEqual({ version: "version of red", rank: 4 });
    await registry.load("blue");
    expect(await registry.load("red")).toEqual(red);
    expect(registry.acquire(null)).toBe(0);
    expect(registry.acquire(red.version)).toBe(1);
    expect(registry.acquire("version of blue")).toBe(2);
    expect(registry.acquire("unknown")).toBeNull();
    await expect(registry.load("green")).rejects.toThrow("all 2 adapter slots are in use");
    await expect(registry.load("missing")).rejects.toThrow("no adapter in missing");
  });

  it("keeps a retired version for its last request, refuses new ones, then frees the slot", async () => {
    const { registry, host } = setup();
    const { version } = await registry.load("red");
    registry.acquire(version);
    registry.acquire(version);
    await registry.retire(version);
    expect(registry.acquire(version)).toBeNull();
    registry.release(version);
    await turn();
    expect(host.slotOf(version)).toBe(1);
    registry.release(version);
    await turn();
    expect(host.slotOf(version)).toBeNull();
    await expect(registry.retire(version)).rejects.toThrow("not loaded");
  });

  it("lets a load wait for a version that is draining", async () => {
    const { registry, host } = setup(1);
    const red = await registry.load("red");
    registry.acquire(red.version);
    await registry.retire(red.version);
    const loading = registry.load("blue");
    await turn();
    expect(host.slots).toEqual(["version of red"]);
    registry.release(red.version);
    await loading;
    expect(host.slots).toEqual(["version of blue"]);
  });

  it("takes a retired version back when it is loaded again", async () => {
    const { registry, host } = setup(2);
    const { version } = await registry.load("red");
    registry.acquire(version);
    await registry.retire(version);
    await registry.load("red");
    expect(registry.acquire(version)).toBe(1);
    registry.release(version);
    registry.release(version);
    await turn();
    expect(host.slotOf(version)).toBe(1);
  });

  it("reports an unload that fails later, and does not block the next load on it", async () => {
    const { registry, host, faults } = setup(1);
    const { version } = await registry.load("red");
    registry.acquire(version);
    await registry.retire(version);
    const loading = registry.load("blue");
    host.unload = async () => {
      throw new Error("busy");
    };
    registry.release(version);
    await expect(loading).rejects.toThrow("all 1 adapter slots are in use");
    expect(faults).toEqual([new Error("busy")]);
  });

  it("says so when there is no host", async () => {
    const registry = new AdapterRegistry(
      null,
      (work) => work(),
      () => {},
    );
    await expect(registry.load("red")).rejects.toThrow("serves no adapters");
    expect(registry.acquire("red")).toBeNull();
    expect(registry.acquire(null)).toBe(0);
  });
});
