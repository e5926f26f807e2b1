import { describe, expect, it } from "vitest";
import { FakeAdapters } from "../../../test/support/fake-adapters.ts";
import { FakeRunner, hashRow, scriptedRow, uniformRow } from "../../../test/support/fake-runner.ts";
import { InProcessEngine } from "../../../test/support/in-process-engine.ts";
import { generateRequest, tokensOf } from "../../../test/support/requests.ts";
import { AdapterTooLarge, NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import { AdapterSlots } from "../adapter-slots.ts";
import type { EngineOutput, Generation } from "../contract.ts";
import { reloadAdapters } from "./engine-loop.ts";

async function reloaded(...adapters: { version: string; folders: string[] }[]) {
  const host = new FakeAdapters(2);
  const faults: string[] = [];
  await reloadAdapters(
    adapters,
    { loadAdapter: (folder) => host.load(folder), unloadAdapter: (version) => host.unload(version) },
    (error) => faults.push(`${error.message}: ${(error.cause as Error).message}`),
  );
  return { slots: host.slots, faults };
}

it("takes the first folder that has the content", async () => {
  const red = { version: "version of red", folders: ["missing", "blue", "red", "red copy"] };
  expect(await reloaded(red)).toEqual({ slots: ["version of red", null], faults: [] });
});

it("gives no slot to unwanted content, and reports what is lost", async () => {
  const { slots, faults } = await reloaded(
    { version: "version of red", folders: ["changed"] },
    { version: "version of blue", folders: ["blue"] },
    { version: "version of green", folders: ["missing", "blue"] },
  );
  expect(slots).toEqual(["version of blue", null]);
  expect(faults).toEqual([
    "adapter version of red was not loaded again from changed: the folder has other content now",
    "adapter version of green was not loaded again from missing, blue: the folder has other content now",
  ]);
});

const counting = scriptedRow((tokens) => tokens.at(-1)! + 1);

async function collect(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !condition(); i++) await turn();
  expect(condition()).toBe(true);
}

describe("the loop and its client on one thread", () => {
  it("describes the model it serves", () => {
    const runner = new FakeRunner({ row: uniformRow, maxPositions: 100, positionsPerBlock: 4, numBlocks: 20 });
    const scheduling = { policy: "fcfs", linkSize: 2 } as const;
    const engine = new InProcessEngine({ runner, adapters: new FakeAdapters(3) }, { scheduling });
    expect(engine.info).toEqual({
      vocabSize: 256,
      maxModelLen: 80,
      positionsPerBlock: 4,
      cacheTokens: 80,
      linkSize: 2,
      policy: "fcfs",
      maxLoras: 3,
      maxLoraRank: 8,
    });
  });

  it("runs requests that arrive one by one, together, or while others run", async () => {
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: counting, numBlocks: 200 }) });
    expect(tokensOf(await collect(engine.generate(generateRequest([10]))))).toEqual([11, 12, 13, 14, 15, 16, 17, 18]);
    const many = Array.from({ length: 50 }, (_, i) => collect(engine.generate(generateRequest([i + 50]))));
    await turn();
    const late = engine.generate(generateRequest([200]));
    for (const [i, outputs] of (await Promise.all(many)).entries()) expect(tokensOf(outputs)[7]).toBe(i + 58);
    expect(tokensOf(await collect(late))[0]).toBe(201);
    expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, promptTokens: 52, generatedTokens: 52 * 8 });
    await engine.close();
  });

  it("keeps two identical requests apart", async () => {
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: counting }) });
    const request = generateRequest([10], { maxTokens: 3 });
    const [a, b] = await Promise.all([engine.generate(request), engine.generate(request)].map(collect));
    expect([tokensOf(a!), tokensOf(b!)]).toEqual([
      [11, 12, 13],
      [11, 12, 13],
    ]);
    await engine.close();
  });

  it("stops a choice and aborts a request while they run, and frees them", async () => {
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: hashRow }) });
    const request = generateRequest([10], { maxTokens: 200, temperature: 1, seed: 1n, ignoreEos: true }, { n: 2 });
    const generation = engine.generate(request);
    const seen: number[] = [];
    for await (const output of generation) {
      if (output.type !== "tokens") continue;
      seen.push(output.index);
      if (seen.length === 4) generation.stop(0);
      if (seen.length === 12) break;
    }
    expect(seen.slice(4)).toEqual(Array(8).fill(1));
    await until(() => engine.stats().running === 0);
    expect(engine.stats()).toMatchObject({ waiting: 0, kvUsage: 0 });
    await engine.close();
  });

  it("lets other work of the thread happen between steps", async () => {
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: uniformRow }) });
    const running = collect(engine.generate(generateRequest([10], { maxTokens: 200, ignoreEos: true })));
    let turns = 0;
    let done = false;
    void running.then(() => {
      done = true;
    });
    while (!done) {
      await turn();
      turns++;
    }
    expect(turns).toBeGreaterThan(190);
    await engine.close();
  });

  it("ends everything on close, without further output, and refuses later requests", async () => {
    let closed = 0;
    const runner = new FakeRunner({ row: uniformRow });
    const close = async (): Promise<void> => {
      closed++;
    };
    const engine = new InProcessEngine({ runner, close, adapters: new FakeAdapters(1) });
    const reading = collect(engine.generate(generateRequest([10], { maxTokens: 200, ignoreEos: true })));
    await turn();
    await turn();
    const refused = expect(engine.loadAdapter("red")).rejects.toThrow("the engine is closed"); // waits for a step's end
    await engine.close();
    await refused;
    expect(closed).toBe(1);
    expect((await reading).length).toBeLessThan(200);
    const [output] = await collect(engine.generate(generateRequest([10])));
    expect(output).toMatchObject({ finish: { reason: "error", message: "the engine is closed" } });
    await expect(engine.unloadAdapter("x")).rejects.toThrow("closed");
  });

  it("loads and unloads adapters while requests run, each in the slot of its content", async () => {
    const adapters = new FakeAdapters(2);
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: hashRow }), adapters });
    const running = collect(engine.generate(generateRequest([10], { maxTokens: 50, ignoreEos: true })));
    const red = await engine.loadAdapter("red");
    expect(red).toEqual({ version: "version of red", rank: 4 });
    const { version } = await engine.loadAdapter("blue");
    expect(await engine.loadAdapter("red copy")).toEqual(red);
    expect(adapters.slots).toEqual([red.version, version]);
    await expect(engine.loadAdapter("green")).rejects.toBeInstanceOf(NoAdapterSlot);
    await expect(engine.loadAdapter("large")).rejects.toBeInstanceOf(AdapterTooLarge);
    await expect(engine.loadAdapter("missing")).rejects.toThrow("no adapter in missing");
    await engine.unloadAdapter(red.version);
    await engine.unloadAdapter(red.version); // harmless
    const refused = await collect(engine.generate(generateRequest([10], {}, { adapter: red.version })));
    expect(refused).toMatchObject([{ finish: { reason: "error", message: "adapter version of red is not loaded" } }]);
    expect(adapters.slots).toEqual([null, version]);
    expect(tokensOf(await running)).toHaveLength(50);
    await engine.close();
  });

  it("refuses to unload an adapter under a request", async () => {
    const adapters = new FakeAdapters(1);
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: hashRow }), adapters });
    const { version } = await engine.loadAdapter("red");
    const request = generateRequest([10], { maxTokens: 200, ignoreEos: true }, { adapter: version, n: 2 });
    const generation = engine.generate(request);
    await expect(engine.unloadAdapter(version)).rejects.toThrow("adapter version of red still has requests");
    generation.stop(0);
    await expect(engine.unloadAdapter(version)).rejects.toThrow("still has requests");
    generation.stop(1);
    await engine.unloadAdapter(version);
    expect(adapters.slots).toEqual([null]);
    await engine.close();
  });

  it("finishes a request on the adapter it began with, and gives the slot away after it", async () => {
    const adapters = new FakeAdapters(1);
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: hashRow }), adapters });
    const slots = new AdapterSlots(engine);
    const { version } = await slots.hold("red");
    const request = generateRequest([10], { maxTokens: 50, ignoreEos: true }, { adapter: version });
    const [release, releaseAborted] = [slots.leaseHeld(version), slots.leaseHeld(version)];
    const running = collect(engine.generate(request)).finally(release);
    const aborted = engine.generate(request);
    await slots.drop(version);
    const replaced = slots.hold("blue");
    await turn();
    aborted.abort();
    releaseAborted();
    await turn();
    expect(adapters.slots).toEqual([version]);
    expect(tokensOf(await running)).toHaveLength(50);
    expect(adapters.slots).toEqual([(await replaced).version]);
    await engine.close();
  });

  it("says so when it serves no adapters", async () => {
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: uniformRow }) });
    await expect(engine.loadAdapter("red")).rejects.toThrow("serves no adapters");
    expect(engine.info).toMatchObject({ maxLoras: 0, maxLoraRank: 0 });
    await engine.close();
  });

  it("throws on an invalid number of choices", () => {
    const engine = new InProcessEngine({ runner: new FakeRunner({ row: uniformRow }) });
    for (const n of [0, -1, 1.5, Number.NaN]) {
      expect(() => engine.generate(generateRequest([1], {}, { n }))).toThrow("n must be a positive integer");
    }
  });

  it("fails its requests and reports itself unhealthy after a bug in the loop", async () => {
    const runner = new FakeRunner({ row: uniformRow });
    runner.copyBlock = () => {
      throw new Error("copy failed");
    };
    const engine = new InProcessEngine({ runner });
    const outputs = await collect(engine.generate(generateRequest([10], {}, { n: 2 })));
    expect(outputs.at(-1)).toMatchObject({ finish: { reason: "error", message: "the engine failed: copy failed" } });
    expect(engine.healthy()).toBe(false);
    await engine.close();
  });
});
