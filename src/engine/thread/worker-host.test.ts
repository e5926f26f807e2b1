import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fixtureFolder } from "../../../test/reference/runner-driver.ts";
import { type CompiledFakes, compileFakes } from "../../../test/support/compile-fakes.ts";
import { InProcessEngine } from "../../../test/support/in-process-engine.ts";
import { generateRequest, tokensOf } from "../../../test/support/requests.ts";
import { createRunner, EXIT_TOKEN, THROW_TOKEN, type WorkerModelOptions } from "../../../test/support/worker-model.ts";
import { checkpointIdentity } from "../../model/checkpoint/checkpoint.ts";
import { compiledEntry } from "../../system/package.ts";
import type { EngineOutput, Generation } from "../contract.ts";
import { WorkerEngine, type WorkerEngineOptions } from "./worker-host.ts";

let fakes: CompiledFakes;
let engines: WorkerEngine[] = [];

beforeAll(() => {
  fakes = compileFakes("worker-model.ts");
});
afterAll(() => fakes.remove());
afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  engines = [];
});

async function start(options: WorkerModelOptions = {}, rest: Partial<WorkerEngineOptions> = {}): Promise<WorkerEngine> {
  const model = () => ({ module: fakes.url("worker-model.ts"), options });
  const engine = await WorkerEngine.start({ model, pausesMs: [5, 10, 20, 40, 80], onFault: () => {}, ...rest });
  engines.push(engine);
  return engine;
}

async function collect(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

/** A number that both threads see. */
const shared = () => new Int32Array(new SharedArrayBuffer(4));
const endless = (token: number) => generateRequest([token], { maxTokens: 500, ignoreEos: true });
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for the first token, so the request is running in the thread; then `rest` is what follows. */
async function started(generation: Generation): Promise<{ rest: Promise<EngineOutput[]> }> {
  const iterator = generation[Symbol.asyncIterator]();
  for (let output = "prefill"; output === "prefill"; ) output = (await iterator.next()).value.type;
  const rest = collect({ stop: () => {}, abort: () => {}, [Symbol.asyncIterator]: () => iterator });
  return { rest };
}

describe("WorkerEngine", () => {
  it("answers like the engine in process, prompt log-probabilities, grammars and adapters included", async () => {
    const options: WorkerModelOptions = { row: "hash" };
    const local = new InProcessEngine(await createRunner(options));
    const remote = await start(options);
    expect(remote.info).toEqual(local.info);
    const { version: adapter } = await remote.loadAdapter("red");
    await local.loadAdapter("red");
    const sampling = { temperature: 1, seed: -5n, logprobs: 3, maxTokens: 20 };
    const requests = [
      generateRequest([5, 6, 7], { ...sampling, promptLogprobs: 2 }, { n: 3 }),
      generateRequest([8], sampling, { adapter }),
      generateRequest([9], sampling, { grammar: "[[3,4,5],[3,4,6,7]]" }),
      generateRequest([], sampling),
    ];
    for (const request of requests) {
      const [a, b] = await Promise.all([local, remote].map((engine) => collect(engine.generate(request))));
      const untimed = (outputs: EngineOutput[]) =>
        outputs.map((o) => (o.type === "prefill" ? { ...o, queuedMs: null } : o));
      expect(untimed(b!)).toEqual(untimed(a!));
    }
    const { running, waiting, kvUsage, ...counters } = local.stats();
    expect(remote.stats()).toEqual({ running, waiting, kvUsage, ...counters });
    await local.close();
  });

  it("keeps the main thread free while the model computes", async () => {
    const gate = shared();
    const engine = await start({ gate });
    const reading = collect(engine.generate(generateRequest([5], { maxTokens: 8 })));
    // A step ends when this thread lets it: if it waited for the step, both would wait for ever.
    const timer = setInterval(() => {
      Atomics.add(gate, 0, 1);
      Atomics.notify(gate, 0);
    }, 1);
    expect(tokensOf(await reading)).toHaveLength(8);
    clearInterval(timer);
  });

  it.each([
    ["exits", EXIT_TOKEN, "exit code 7"],
    ["throws", THROW_TOKEN, "an error nobody caught"],
  ])("ends open requests with an error when the thread %s, and restarts it", async (_how, token, message) => {
    const faults: Error[] = [];
    const engine = await start({ busyMs: 1 }, { onFault: (error) => void faults.push(error) });
    const { version } = await engine.loadAdapter("red");
    const before = engine.stats().steps;
    const running = await started(engine.generate(endless(5)));
    const killer = collect(engine.generate(generateRequest([token], {}, { n: 2 })));
    for (const outputs of [await running.rest, await killer]) {
      expect(outputs.at(-1)).toMatchObject({ finish: { reason: "error", message: expect.stringContaining(message) } });
    }
    expect((await killer).filter((output) => output.type === "tokens" && output.finish !== null)).toHaveLength(2);
    expect(faults.map(String)).toEqual([expect.stringContaining(message)]);
    expect(engine.healthy()).toBe(true);
    expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
    // Asked while the thread is down. It waits for the next one, which has the adapter again.
    const outputs = await collect(engine.generate(generateRequest([5], { maxTokens: 3 }, { adapter: version })));
    expect(tokensOf(outputs)).toEqual([6, 7, 8]);
    expect(engine.stats().steps).toBeGreaterThan(before);
  });

  it("rejects an adapter call that was open when the thread died", async () => {
    const exited = shared();
    const engine = await start({ busyMs: 1, exited });
    const red = await engine.loadAdapter("red");
    await engine.loadAdapter("blue");
    await engine.unloadAdapter(red.version);
    const killer = collect(engine.generate(generateRequest([EXIT_TOKEN])));
    // Blocks this thread until the other one is gone. The news of its end has not arrived yet.
    Atomics.wait(exited, 0, 0);
    await expect(engine.loadAdapter("green")).rejects.toThrow("the engine thread ended");
    await killer;
    // The unloaded one did not come back.
    await expect.poll(() => engine.healthy()).toBe(true);
    const outputs = await collect(engine.generate(generateRequest([5], {}, { adapter: red.version })));
    expect(outputs).toMatchObject([{ finish: { message: `adapter ${red.version} is not loaded` } }]);
  });

  it("does not reload an adapter whose unload was open when the thread died", async () => {
    const exited = shared();
    const engine = await start({ exited });
    const { version } = await engine.loadAdapter("red");
    await engine.loadAdapter("blue");
    const killer = collect(engine.generate(generateRequest([EXIT_TOKEN])));
    // Blocks this thread until the other one is gone. The news of its end has not arrived yet.
    Atomics.wait(exited, 0, 0);
    await Promise.allSettled([engine.unloadAdapter(version), killer]);
    // "green" is loaded by the next thread, after it has loaded again what it must have.
    const green = await engine.loadAdapter("green");
    const answerOf = (adapter: string) => collect(engine.generate(generateRequest([5], { maxTokens: 2 }, { adapter })));
    expect(await answerOf(version)).toMatchObject([{ finish: { message: `adapter ${version} is not loaded` } }]);
    expect(tokensOf(await answerOf(green.version))).toEqual([6, 7]);
  });

  it.each(["red", "red copy"])("reloads an adapter when one of its folders, %s, is gone", async (gone) => {
    let starts = 0;
    const module = fakes.url("worker-model.ts");
    const engine = await start({}, { model: () => ({ module, options: starts++ === 0 ? {} : { gone } }) });
    const { version } = await engine.loadAdapter("red");
    expect((await engine.loadAdapter("red copy")).version).toBe(version);
    await collect(engine.generate(generateRequest([EXIT_TOKEN])));
    const outputs = await collect(engine.generate(generateRequest([5], { maxTokens: 2 }, { adapter: version })));
    expect(tokensOf(outputs)).toEqual([6, 7]);
  });

  it("gives up after too many failed restarts, and says so", async () => {
    let starts = 0;
    const faults: string[] = [];
    const module = fakes.url("worker-model.ts");
    const engine = await start(
      {},
      {
        model: () => ({ module, options: starts++ === 0 ? {} : { refuse: "the file is gone" } }),
        pausesMs: [5, 10, 20],
        onFault: (error) => void faults.push(error.message),
      },
    );
    await collect(engine.generate(generateRequest([EXIT_TOKEN])));
    const waiting = collect(engine.generate(generateRequest([5])));
    expect((await waiting)[0]).toMatchObject({
      finish: { message: expect.stringContaining("could not be restarted in 3") },
    });
    expect(starts).toBe(4);
    expect(faults).toHaveLength(4);
    expect(faults[3]).toContain("the file is gone");
    expect(engine.healthy()).toBe(false);
    const late = await collect(engine.generate(generateRequest([5])));
    expect(late).toMatchObject([
      { finish: { reason: "error", message: expect.stringContaining("could not be restarted") } },
    ]);
    await expect(engine.loadAdapter("red")).rejects.toThrow("could not be restarted");
  });

  it("does not start without its model, and says why", async () => {
    await expect(start({ refuse: "config.json is missing" })).rejects.toThrow("config.json is missing");
    const model = () => ({ module: "data:text/javascript,export const x = 1", options: {} });
    await expect(start({}, { model })).rejects.toThrow("exports neither createRunner nor createLoop");
  });

  it("survives a storm of 1,000 aborted requests and answers the next one", async () => {
    const engine = await start({ numBlocks: 256 });
    const storm = Array.from({ length: 1000 }, (_, i) => engine.generate(endless(3 + (i % 200))));
    const readers = storm.map((generation) => collect(generation));
    await expect.poll(() => engine.stats().running).toBeGreaterThan(0);
    for (const generation of storm) generation.abort();
    await Promise.all(readers);
    expect(tokensOf(await collect(engine.generate(generateRequest([5], { maxTokens: 2 }))))).toEqual([6, 7]);
    expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
  });

  it("closes in the middle of everything", async () => {
    const engine = await start({ busyMs: 5 });
    const readers = Array.from({ length: 5 }, () => collect(engine.generate(endless(5))));
    await expect.poll(() => engine.stats().running).toBe(5);
    await engine.close();
    await Promise.all(readers);
    expect(engine.healthy()).toBe(false);
    const late = await collect(engine.generate(generateRequest([5])));
    expect(late).toMatchObject([{ finish: { reason: "error", message: "the engine is closed" } }]);
  });

  // A thread that is ended from outside while the runtime computes aborts the whole process.
  it("closes in the middle of a step that takes too long, and the process survives", async () => {
    const folder = fixtureFolder("llama");
    const options = {
      ...{ folder, identity: checkpointIdentity(folder), vocabulary: null, weightType: "float32", threads: 1 },
      ...{
        positionsPerBlock: 16,
        numBlocks: 2048,
        maxPositions: 512,
        maxLoras: 0,
        maxLoraRank: 0,
        adaptersFromStart: false,
      },
    };
    const model = () => ({ module: compiledEntry(import.meta.url, "../../app/onnx-host.ts").href, options });
    for (const pause of [20, 60, 120]) {
      const scheduling = { maxNumSeqs: 64, maxNumBatchedTokens: 32_768, prefixCaching: false };
      const engine = await WorkerEngine.start({ model, scheduling, closeMs: 1 });
      const prompt = Array.from({ length: 500 }, (_, i) => 3 + (i % 250));
      const readers = Array.from({ length: 64 }, () => collect(engine.generate(generateRequest(prompt))));
      await sleep(pause);
      await engine.close();
      await Promise.all(readers);
    }
  });
});
