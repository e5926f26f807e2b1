import { describe, expect, it } from "vitest";
import { FakeAdapters } from "../../test/support/fake-adapters.ts";
import { NoAdapterSlot } from "../model/lora/adapter-host.ts";
import { AdapterSlots } from "./adapter-slots.ts";

function setup(maxLoras = 2) {
  const host = new FakeAdapters(maxLoras);
  const calls: string[] = [];
  const engine = {
    info: {
      vocabSize: 1,
      maxModelLen: 1,
      positionsPerBlock: 1,
      cacheTokens: 1,
      linkSize: 1,
      policy: "fcfs" as const,
      maxLoras,
      maxLoraRank: 8,
    },
    async loadAdapter(folder: string) {
      await turn();
      calls.push(`load ${folder}`);
      return host.load(folder);
    },
    async unloadAdapter(version: string) {
      await turn();
      calls.push(`unload ${version}`);
      await host.unload(version);
    },
  };
  /** Folders whose content is in the engine. */
  const loaded = () => host.slots.flatMap((version) => version?.replace("version of ", "") ?? []).sort();
  return { calls, engine, host, loaded, slots: new AdapterSlots(engine) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function passingOf(work: Promise<unknown>): Promise<boolean> {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(NoAdapterSlot);
  return (error as NoAdapterSlot).passing;
}

describe("AdapterSlots", () => {
  it("keeps steps after their requests, and unloads the least recently used one for another", async () => {
    const { slots, loaded, calls } = setup();
    for (const step of ["one", "two"]) (await slots.lease(step)).release();
    (await slots.lease("one")).release();
    expect(calls).toEqual(["load one", "load two"]);
    await slots.lease("three");
    expect(loaded()).toEqual(["one", "three"]);
  });

  it("counts the end of a request as a use", async () => {
    const { slots, loaded } = setup();
    const long = await slots.lease("one");
    (await slots.lease("two")).release();
    long.release();
    await slots.lease("three");
    expect(loaded()).toEqual(["one", "three"]);
  });

  it("unloads a step to hold an adapter, never the other way round", async () => {
    const { slots, loaded } = setup(1);
    (await slots.lease("step")).release();
    const { version, rank } = await slots.hold("held");
    expect(loaded()).toEqual(["held"]);
    expect(rank).toBe(4);
    expect(await passingOf(slots.lease("step"))).toBe(false);
    expect(await passingOf(slots.hold("other"))).toBe(false);
    await slots.drop(version);
    expect(loaded()).toEqual([]);
    await slots.lease("step");
    expect(loaded()).toEqual(["step"]);
  });

  it("unloads nothing that a request uses, and says that waiting helps", async () => {
    const { slots, loaded } = setup();
    await slots.hold("held");
    const [lease, second] = [await slots.lease("one"), await slots.lease("one")];
    expect(await passingOf(slots.hold("other"))).toBe(true);
    lease.release();
    lease.release(); // counts once
    expect(await passingOf(slots.lease("two"))).toBe(true);
    expect(loaded()).toEqual(["held", "one"]);
    second.release();
    await slots.lease("two");
    expect(loaded()).toEqual(["held", "two"]);
  });

  it("loads a step once for requests that arrive together", async () => {
    const { slots, calls } = setup();
    const leases = await Promise.all(["one", "one", "two", "one"].map((step) => slots.lease(step)));
    expect(new Set(leases.map(({ version }) => version))).toEqual(new Set(["version of one", "version of two"]));
    expect(calls).toEqual(["load one", "load two"]);
  });

  it("loads a step again when it is wanted while being unloaded", async () => {
    const { slots, loaded, calls } = setup();
    for (const step of ["one", "two"]) await slots.preload(step);
    const three = slots.lease("three");
    while (!calls.includes("unload version of one")) await turn();
    const one = slots.lease("one");
    expect((await Promise.all([three, one])).map(({ version }) => version)).toEqual([
      "version of three",
      "version of one",
    ]);
    expect(loaded()).toEqual(["one", "three"]);
  });

  it("gives the slot of a step that was loaded ahead to the next load", async () => {
    const { slots, loaded } = setup(1);
    await Promise.all([slots.preload("one"), slots.preload("two"), slots.hold("held")]);
    expect(loaded()).toEqual(["held"]);
  });

  it("gives the same content one slot until nobody needs it", async () => {
    const { slots, loaded } = setup(1);
    const { version } = await slots.hold("red");
    const lease = await slots.lease("red copy"); // no room is needed for it
    expect(lease.version).toBe(version);
    expect((await slots.hold("red")).version).toBe(version); // another name
    await slots.drop(version);
    await slots.drop(version);
    expect(loaded()).toEqual(["red"]);
    expect(await passingOf(slots.hold("blue"))).toBe(true);
    lease.release();
    await slots.hold("blue");
    expect(loaded()).toEqual(["blue"]);
  });

  it("keeps an adapter that is both held and a step until it is neither", async () => {
    const { slots, loaded } = setup();
    const { version } = await slots.hold("red");
    (await slots.lease("red copy")).release();
    await slots.forget("red copy");
    expect(loaded()).toEqual(["red"]);
    (await slots.lease("red copy")).release();
    await slots.drop(version);
    expect(loaded()).toEqual(["red"]);
    await slots.forget("red copy");
    expect(loaded()).toEqual([]);
  });

  it("names a folder that stays when one of two with the same content goes", async () => {
    const { slots, calls, loaded } = setup();
    for (const step of ["red", "red copy"]) (await slots.lease(step)).release();
    await slots.forget("red copy");
    expect(calls).toEqual(["load red", "load red copy", "load red"]);
    expect(loaded()).toEqual(["red"]);
    await slots.forget("red");
    expect(calls.at(-1)).toBe("unload version of red");
  });

  it("forgets a step that is being loaded, but only after its request", async () => {
    const { slots, loaded } = setup();
    const [lease] = await Promise.all([slots.lease("one"), slots.forget("one")]);
    expect(loaded()).toEqual(["one"]);
    lease.release();
    await slots.forget("never loaded"); // after the unload, in turn
    expect(loaded()).toEqual([]);
  });

  it("keeps a dropped adapter for its requests, and makes the next load wait for them", async () => {
    const { slots, loaded } = setup(1);
    const { version } = await slots.hold("old");
    const release = slots.leaseHeld(version);
    await slots.drop(version);
    expect(loaded()).toEqual(["old"]);
    const next = slots.hold("new");
    await turn();
    expect(loaded()).toEqual(["old"]);
    release();
    await next;
    expect(loaded()).toEqual(["new"]);
  });

  it("takes a dropped adapter back when it is held again before its requests have ended", async () => {
    const { slots, loaded, calls } = setup();
    const { version } = await slots.hold("red");
    const release = slots.leaseHeld(version);
    await slots.drop(version);
    await slots.hold("red copy");
    release();
    await slots.forget("never loaded"); // after an unload, if there was one
    expect(loaded()).toEqual(["red"]);
    expect(calls).toEqual(["load red", "load red copy"]);
  });

  it("replaces an adapter in its own slot, after the requests on it", async () => {
    const { slots, loaded, host } = setup(1);
    const { version } = await slots.hold("old");
    const release = slots.leaseHeld(version);
    const replaced = slots.replace(version, "new");
    await turn();
    expect(loaded()).toEqual(["old"]);
    release();
    const info = await replaced;
    expect(loaded()).toEqual(["new"]);
    expect(slots.isHeldOnce(version)).toBe(false);
    expect(slots.isHeldOnce(info.version)).toBe(true);
    host.gone = "gone";
    await expect(slots.replace(info.version, "gone")).rejects.toThrow("no adapter in gone");
    expect(slots.isHeldOnce(info.version)).toBe(false);
    await slots.hold("next");
    expect(loaded()).toEqual(["next"]);
  });

  it("continues after a failed load", async () => {
    const { slots, loaded } = setup();
    const attempts = ["missing", "one", "missing too"].map((step) => slots.lease(step));
    await expect(attempts[0]).rejects.toThrow("no adapter in missing");
    await expect(attempts[2]).rejects.toThrow("no adapter in missing too");
    await expect(slots.hold("missing")).rejects.not.toBeInstanceOf(NoAdapterSlot);
    expect(loaded()).toEqual(["one"]);
  });

  it("makes room even if the engine has lost the adapter to unload", async () => {
    const { slots, loaded, host } = setup();
    for (const step of ["one", "two"]) (await slots.lease(step)).release();
    const { version } = await slots.lease("two");
    await host.unload("version of one"); // the engine's thread started again and could not read it
    await slots.hold("red");
    await host.unload("version of red");
    await slots.drop("version of red");
    expect(loaded()).toEqual(["two"]);
    expect(host.slotOf(version)).not.toBeNull();
  });
});
