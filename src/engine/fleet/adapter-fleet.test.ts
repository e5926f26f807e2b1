import { describe, expect, it } from "vitest";
import { FakeReplica } from "../../../test/support/fake-replica.ts";
import { finishOf, generateRequest, tokensOf } from "../../../test/support/requests.ts";
import { outputsOf, startFleet } from "../../../test/support/start-fleet.ts";
import { EngineUnavailable } from "../../errors/faults.ts";
import { AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";

const RED = "version of red";
const request = (adapter: string | null = RED) => generateRequest([5, 6, 7], { maxTokens: 3 }, { adapter });
const turn = () => new Promise((resolve) => setImmediate(resolve));

function gated(replica: FakeReplica): () => void {
  let open = () => {};
  replica.gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return open;
}

describe("adapters of a fleet", () => {
  it("count as loaded when one replica has them; the others follow", async () => {
    const [a, b] = [new FakeReplica("a"), new FakeReplica("b")];
    const open = gated(b);
    const { engine } = await startFleet([a, b]);
    expect(await engine.loadAdapter("red")).toMatchObject({ version: RED, rank: 4 });
    expect([a.adapters, b.adapters]).toEqual([[RED], []]);
    expect(tokensOf(await outputsOf(engine.generate(request())))).toHaveLength(3);
    expect([a.requests.length, b.requests.length]).toEqual([1, 0]);
    open();
    await expect.poll(() => b.adapters).toEqual([RED]);
    await engine.unloadAdapter(RED);
    expect([a.adapters, b.adapters]).toEqual([[], []]);
    await engine.close();
  });

  it("are refused as on one engine", async () => {
    const { engine } = await startFleet([new FakeReplica("a", { maxLoras: 1 }), new FakeReplica("b", { maxLoras: 3 })]);
    expect(engine.info.maxLoras).toBe(1);
    await engine.loadAdapter("red");
    await engine.loadAdapter("red copy");
    await expect(engine.loadAdapter("blue")).rejects.toBeInstanceOf(NoAdapterSlot);
    await expect(engine.loadAdapter("large")).rejects.toBeInstanceOf(AdapterTooLarge);
    await expect(engine.loadAdapter("missing")).rejects.toThrow("no adapter in missing");
    await engine.unloadAdapter(RED);
    await engine.loadAdapter("blue");
    await engine.close();
  });

  it("wait for a replica, but not for ever, and leave no trace", async () => {
    const a = new FakeReplica("a", { maxLoras: 1 });
    const { engine } = await startFleet([a], { queueTimeoutMs: 200 });
    a.die();
    await expect(engine.loadAdapter("red")).rejects.toBeInstanceOf(EngineUnavailable);
    const waiting = engine.loadAdapter("blue");
    await turn();
    a.revive();
    await waiting;
    expect(a.adapters).toEqual(["version of blue"]);
    await engine.unloadAdapter("version of blue");
    const open = gated(a);
    const failing = engine.loadAdapter("green");
    await turn();
    a.die();
    open();
    await expect(failing).rejects.toBeInstanceOf(EngineUnavailable);
    await engine.close();
  });

  it("come back with a replica that restarts, at most two at a time", async () => {
    const [a, b] = [new FakeReplica("a", { maxLoras: 4 }), new FakeReplica("b", { maxLoras: 4 })];
    const { engine } = await startFleet([a, b]);
    for (const name of ["red", "blue", "green", "grey"]) await engine.loadAdapter(name);
    await expect.poll(() => b.adapters.length).toBe(4);
    b.die();
    const open = gated(b);
    b.mostLoading = 0;
    b.revive();
    await turn();
    expect([b.adapters, b.loading]).toEqual([[], 2]);
    open();
    await expect.poll(() => b.adapters.length).toBe(4);
    expect(b.mostLoading).toBe(2);
    await engine.close();
  });

  it("that were unloaded while a replica was unreachable go when it comes back", async () => {
    const [a, b] = [new FakeReplica("a", { maxLoras: 1 }), new FakeReplica("b", { maxLoras: 1 })];
    const { engine } = await startFleet([a, b]);
    await engine.loadAdapter("red");
    await expect.poll(() => b.adapters).toEqual([RED]);
    b.die();
    await engine.unloadAdapter(RED);
    await engine.loadAdapter("blue");
    b.revive(false);
    await expect.poll(() => b.adapters).toEqual(["version of blue"]);
    await engine.close();
  });

  it("make a request wait for the load, once for many requests", async () => {
    const [a, b] = [new FakeReplica("a", { maxInFlight: 1 }), new FakeReplica("b")];
    const open = gated(b);
    const { engine } = await startFleet([a, b]);
    await engine.loadAdapter("red");
    const all = Array.from({ length: 5 }, () => outputsOf(engine.generate(request())));
    await turn();
    expect([a.running, b.running]).toEqual([1, 0]);
    open();
    for (const outputs of await Promise.all(all)) expect(tokensOf(outputs)).toHaveLength(3);
    expect(b.loads).toEqual([RED]);
    await engine.close();
  });

  it("are loaded again where a replica has forgotten them", async () => {
    const a = new FakeReplica("a");
    const { engine } = await startFleet([a]);
    await engine.loadAdapter("red");
    const before = tokensOf(await outputsOf(engine.generate(request())));
    a.forgetAdapters();
    const both = await Promise.all([0, 1].map(() => outputsOf(engine.generate({ ...request(), n: 2 }))));
    for (const outputs of both) for (const index of [0, 1]) expect(tokensOf(outputs, index)).toEqual(before);
    expect(a.loads).toEqual([RED, RED]);
    expect(engine.replicas()[0]).toMatchObject({ state: "ready", inFlight: 0 });
    await engine.close();
  });

  it("whose files are gone end their requests, and nobody else's", async () => {
    const a = new FakeReplica("a");
    const { engine } = await startFleet([a]);
    await engine.loadAdapter("red");
    a.forgetAdapters();
    a.loadAdapter = () => Promise.reject(new Error("the folder is gone"));
    const outputs = await outputsOf(engine.generate(request()));
    expect(finishOf(outputs)).toMatchObject({ reason: "error", fault: "unavailable" });
    expect(tokensOf(await outputsOf(engine.generate(request(null))))).toHaveLength(3);
    await engine.close();
  });
});
