import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { adapterFolder } from "../../../test/support/adapter-folder.ts";
import { type CompiledFakes, compileFakes } from "../../../test/support/compile-fakes.ts";
import { describeEngine } from "../../../test/support/engine-contract.ts";
import { FAULTS, type FakeGpuOptions } from "../../../test/support/fake-gpu-process.ts";
import { fakeProcess, type GpuSubject, type StartedGpu, startGpu } from "../../../test/support/gpu-engine.ts";
import { finishOf, generateRequest, prefillOf, tokensOf } from "../../../test/support/requests.ts";
import { LLAMA } from "../../../test/support/training-service.ts";
import type { EngineOutput, Generation } from "../contract.ts";
import { GpuProcess, type GpuProcessOptions } from "./gpu-process.ts";

let fakes: CompiledFakes;
let folder: string;
let started: StartedGpu[] = [];

beforeAll(() => {
  fakes = compileFakes("fake-gpu-process.ts");
  folder = mkdtempSync(join(tmpdir(), "flywheel-gpu-test-"));
});
afterAll(() => {
  fakes.remove();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  for (const { loop, constraints, engine } of started) {
    if (engine.healthy()) loop.checkIntegrity();
    await engine.close();
    expect(constraints.live).toBe(0);
  }
  started = [];
});

const processOf = (fake?: FakeGpuOptions, times?: Partial<GpuProcessOptions>) =>
  fakeProcess(fakes.url("fake-gpu-process.ts"), fake, times);

async function start(fake: FakeGpuOptions = {}, rest: Partial<GpuSubject> = {}): Promise<StartedGpu> {
  const gpu = await startGpu({ process: processOf(fake), folder: LLAMA, ...rest });
  started.push(gpu);
  return gpu;
}

async function collect(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

describeEngine("the loop of a GPU, over the fake process", () => ({
  start: async (needs) => (await start({ pages: (needs.cacheTokens ?? 4096) / 64 }, needs)).engine,
  folders: [adapterFolder(folder, "red"), adapterFolder(folder, "blue"), adapterFolder(folder, "green")],
  tolerance: 1e-6,
}));

describe("faults of the process", () => {
  const endless = { ignoreEos: true, maxTokens: 400 };

  it.each([
    ["ends by a fault of the device", FAULTS.exit, "the GPU process ended with code 3"],
    ["is killed", FAULTS.kill, "the GPU process was ended by SIGKILL"],
    [
      "sends a broken frame",
      FAULTS.garbage,
      'the GPU process broke the protocol: "step": no u32 array "prefilledRequests"',
    ],
    ["takes no step for too long", FAULTS.hang, "the GPU process was ended: no step in 0.3 seconds"],
    ["says that a row ended that did not", FAULTS.lie, 'row 2 ends by "stop" there and "" here'],
  ])("ends all requests when it %s", async (_how, token, message) => {
    const { engine } = await start({ stepMs: 2 }, { stallMs: 300 });
    const running = collect(engine.generate(generateRequest([5], endless)));
    const outputs = await collect(engine.generate(generateRequest([token])));
    for (const ended of [outputs, await running]) {
      expect(finishOf(ended)).toMatchObject({ reason: "error", message: expect.stringContaining(message) });
    }
    expect(engine.healthy()).toBe(false);
  });

  it("end one row or one request when they are its own", async () => {
    const { engine } = await start({ stepMs: 1 });
    const running = collect(engine.generate(generateRequest([5, 6], { ignoreEos: true, maxTokens: 40 })));
    const nan = await collect(engine.generate(generateRequest([FAULTS.nan], {}, { n: 2 })));
    for (const index of [0, 1]) expect(finishOf(nan, index)!.message).toMatch(/invalid logits \(NaN\)/);
    const failed = await collect(engine.generate(generateRequest([FAULTS.error])));
    expect(finishOf(failed)).toMatchObject({ reason: "error", message: "out of memory" });
    expect(tokensOf(await running)).toHaveLength(40);
  });

  it("leave no folder, and nothing running", async () => {
    const folders = () => readdirSync(tmpdir()).filter((name) => /^flywheel-gpu-\w{6}$/.test(name));
    const before = folders();
    const { engine, process: gpu } = await start();
    expect(folders()).toEqual(before);
    const { pid } = gpu;
    await engine.close();
    expect(() => process.kill(pid!, 0)).toThrow("ESRCH");
  });

  it("are told at the start", async () => {
    const failing = (fake: FakeGpuOptions, times?: Partial<GpuProcessOptions>) =>
      startGpu({ process: processOf(fake, times), folder: LLAMA });
    await expect(failing({ refuse: "the GPU has no room" })).rejects.toThrow("the GPU has no room");
    await expect(failing({ protocol: 1 })).rejects.toThrow("it speaks protocol 1; this server speaks 2");
    const died = failing({ die: "No module named 'torch'" });
    await expect(died).rejects.toMatchObject({ cause: "No module named 'torch'" });
    await expect(died).rejects.toThrow("the GPU process ended with code 1");
    const sleeping = { command: ["sleep", "60"] as [string, string], env: {}, startMs: 50 };
    await expect(GpuProcess.start(sleeping, {})).rejects.toThrow("it did not dial back in 0.05 seconds");
    const missing = { command: ["/nowhere/python3"] as [string], env: {} };
    await expect(GpuProcess.start(missing, {})).rejects.toThrow("/nowhere/python3 cannot be started");
  });

  it("are noticed when it answers no pings", async () => {
    const gpu = await startGpu({ process: processOf({ mute: true }, { pingMs: 20 }), folder: LLAMA });
    const outputs = await collect(gpu.engine.generate(generateRequest([FAULTS.hang])));
    expect(finishOf(outputs)!.message).toContain("it stopped answering");
    await gpu.engine.close();
  });
});

it("keeps the time that a request waited", async () => {
  const { engine } = await start({ stepMs: 20 }, { scheduling: { maxNumSeqs: 1 } });
  const [, second] = await Promise.all(
    [5, 6].map((id) => collect(engine.generate(generateRequest([id], { ignoreEos: true })))),
  );
  expect(prefillOf(second!).queuedMs).toBeGreaterThan(50);
});
