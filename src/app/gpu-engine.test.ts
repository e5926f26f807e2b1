// The engine of `--device cuda` as servers use it, over the fake process. test/torch has it over Python.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fixtureFolder } from "../../test/reference/runner-driver.ts";
import { adapterFolder } from "../../test/support/adapter-folder.ts";
import { type CompiledFakes, compileFakes } from "../../test/support/compile-fakes.ts";
import { FAULTS, type FakeGpuOptions } from "../../test/support/fake-gpu-process.ts";
import { fakeProcess } from "../../test/support/gpu-engine.ts";
import { finishOf, generateRequest, tokensOf } from "../../test/support/requests.ts";
import { loadConfig } from "../config/load.ts";
import type { Config } from "../config/options.ts";
import type { Engine, EngineOutput, Generation } from "../engine/contract.ts";
import { readModelConfig } from "../model/checkpoint/model-config.ts";
import { readAdapter } from "../model/lora/adapter-reader.ts";
import { createGpuEngine, type GpuFacts, lacksOf } from "./gpu-engine.ts";

let fakes: CompiledFakes;
let adapters: string;
let engines: Engine[] = [];

beforeAll(() => {
  fakes = compileFakes("fake-gpu-process.ts");
  adapters = mkdtempSync(join(tmpdir(), "flywheel-gpu-adapters-"));
});
afterAll(() => {
  fakes.remove();
  rmSync(adapters, { recursive: true });
});
afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  engines = [];
});

interface Given {
  config?: Partial<Config>;
  fake?: FakeGpuOptions;
  folder?: string;
  onFault?: (error: Error) => void;
}

async function start({ config = {}, fake = {}, folder = fixtureFolder("llama"), onFault = () => {} }: Given = {}) {
  const model = readModelConfig(folder);
  const { command, env } = fakeProcess(fakes.url("fake-gpu-process.ts"), fake);
  const engine = await createGpuEngine(
    { ...loadConfig({ env: {} }), device: "cuda", ...config },
    {
      ...{ folder, model, vocabulary: null, process: { command, env } },
      fleet: { readAdapter: (adapter) => readAdapter(adapter, model), queueTimeoutMs: 60_000, onFault },
    },
  );
  engines.push(engine);
  return engine;
}

async function collect(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

describe("createGpuEngine", () => {
  it("goes on after the process was lost: with its adapters, and with what it ran where that is exact", async () => {
    const faults: string[] = [];
    const engine = await start({ fake: { stepMs: 5 }, onFault: ({ message }) => void faults.push(message) });
    const { version } = await engine.loadAdapter(adapterFolder(adapters, "red"));
    const sampling = { ignoreEos: true, maxTokens: 60 };
    const expected = tokensOf(await collect(engine.generate(generateRequest([9, 8], sampling, { adapter: version }))));
    const [greedy, seeded] = [{}, { temperature: 1, seed: 4n }].map((more) =>
      collect(engine.generate(generateRequest([9, 8], { ...sampling, ...more }, { adapter: version }))),
    );
    await expect.poll(() => engine.stats().generatedTokens).toBeGreaterThan(70);
    const killer = engine.generate(generateRequest([FAULTS.kill]));
    await expect.poll(() => faults.length).toBeGreaterThan(0);
    killer.abort(); // it would kill the next one too
    expect(tokensOf(await greedy!)).toEqual(expected);
    // Its random numbers depend on where the output began.
    expect(finishOf(await seeded!)).toMatchObject({ reason: "error", fault: "unavailable" });
    expect(faults.join()).toContain("the GPU process was ended by SIGKILL");
  });

  it("is asked by the edge about what fits", async () => {
    const engine = await start({ fake: { pages: 4 } });
    expect(engine.info).toMatchObject({ maxModelLen: 256, cacheTokens: 256, linkSize: 64, maxLoras: 4 });
    expect(engine.replicas!()).toMatchObject([{ name: "engine 0", maxInFlight: 32, state: "ready" }]);
    const small = start({ fake: { pages: 4 }, config: { maxModelLen: 300 } });
    await expect(small).rejects.toThrow("--max-model-len 300 does not fit the KV cache (256 tokens)");
  });

  it("refuses settings and models that it cannot serve, and passes on why the process refuses", async () => {
    const refused = (config: Partial<Config>, folder?: string) => start({ config, ...(folder ? { folder } : {}) });
    await expect(refused({ dtype: "int8" })).rejects.toThrow("--dtype int8 is for --device cpu");
    await expect(refused({ dataParallelSize: 2 })).rejects.toThrow("--data-parallel-size is for --device cpu");
    await expect(refused({ blockSize: 32 })).rejects.toThrow("--block-size is 64 with --device cuda");
    await expect(refused({ maxModelLen: 513 })).rejects.toThrow("more than the model's 512 positions");
    await expect(refused({}, fixtureFolder("gpt2"))).rejects.toThrow(
      "--device cuda does not run models of the family gpt2. Serve it without --device, or with vLLM (--engine-url).",
    );
    await expect(refused({}, fixtureFolder("qwen3-moe"))).rejects.toThrow("--device cuda runs no experts yet");
    await expect(start({ fake: { refuse: "the GPU has no room" } })).rejects.toThrow(/^the GPU has no room$/);
    const dead = start({ fake: { die: "it went wrong" }, config: { device: "cpu-torch", python: "/nowhere/python" } });
    await expect(dead).rejects.toThrow(/^--python \/nowhere\/python: there is no such program. Install Python 3.11/);
  });
});

describe("lacksOf", () => {
  const FACTS: GpuFacts = {
    ...{ python: "3.12.1", executable: "/opt/venv/bin/python", platform: "linux" },
    packages: { torch: { version: "2.11.0+cu130", error: null }, triton: { version: "3.6.0", error: null } },
    ...{ compiler: "/usr/bin/gcc", headers: "/usr/include/python3.12", driver: "13.0" },
    kernelCache: { folder: "/home/someone/.triton", writable: true },
    devices: [{ name: "NVIDIA H200", capability: [9, 0], totalBytes: 150e9, freeBytes: 149e9 }],
  };
  const missing = (error: string) => ({ version: null, error });

  it("finds nothing where everything is", () => {
    expect(lacksOf(FACTS, true)).toEqual([]);
  });

  it.each<[string, Partial<GpuFacts>, string, string]>([
    ["an old Python", { python: "3.9.2" }, "python", "apt-get install python3.11"],
    [
      "no torch",
      { packages: { ...FACTS.packages, torch: missing("No module") } },
      "torch",
      "/opt/venv/bin/python -m pip install",
    ],
    [
      "an old torch",
      { packages: { ...FACTS.packages, torch: { version: "2.9.1+cu128", error: null } } },
      "torch",
      "torch>=2.11",
    ],
    ["no triton", { packages: { ...FACTS.packages, triton: missing("No module") } }, "triton", "torch>=2.11"],
    ["no compiler", { compiler: null }, "compiler", "apt-get install gcc"],
    ["no headers", { headers: null }, "headers", "apt-get install python3.12-dev"],
    ["no driver", { driver: null, devices: [] }, "driver", "nvidia-driver"],
    ["no GPU", { devices: [] }, "gpu", "nvidia-smi"],
    ["an old GPU", { devices: [{ ...FACTS.devices[0]!, capability: [7, 5] }] }, "gpu", "--device cpu"],
    [
      "a cache that cannot be written",
      { kernelCache: { folder: "/x", writable: false } },
      "kernel-cache",
      "TRITON_CACHE_DIR",
    ],
    ["another system", { platform: "darwin" }, "platform", "Linux"],
  ])("names %s, and the line that mends it", (_what, change, check, advice) => {
    expect(lacksOf({ ...FACTS, ...change }, true)).toMatchObject([{ check, advice: expect.stringContaining(advice) }]);
  });

  it("asks for no GPU, and nothing that belongs to one, without one", () => {
    const packages = { torch: { version: "2.13.0+cpu", error: null }, triton: missing("No module") };
    const bare = { ...FACTS, packages, compiler: null, headers: null, driver: null, devices: [] };
    expect(lacksOf(bare, false)).toEqual([]);
    expect(lacksOf(bare, true).map(({ check }) => check)).toEqual(["triton", "compiler", "headers", "torch"]);
  });
});
