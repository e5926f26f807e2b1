import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { readModelConfig } from "../checkpoint/model-config.ts";
import { SafetensorsFile } from "../checkpoint/safetensors.ts";
import { type TensorToWrite, writeSafetensors } from "../checkpoint/safetensors-writer.ts";
import { mapsOf } from "../families/tensor-names.ts";
import { createAdapter, type LoraContent, type LoraPair } from "./lora-adapter.ts";
import { loadPeft, savePeft } from "./peft.ts";

const families = ["llama", "llama3", "qwen2", "qwen3", "mistral", "gemma3", "gemma2", "olmo2", "granite", "phi3"];
const fixture = "test/fixtures/llama";
const config = readModelConfig(fixture);

let root: string;
let counter = 0;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "peft-"));
});
afterAll(() => rmSync(root, { recursive: true }));

const fresh = () => join(root, `adapter-${counter++}`);

/** A copy of the Llama adapter with changed settings and tensors. */
function changed(settings: object, change: (tensors: TensorToWrite[]) => TensorToWrite[] = (all) => all): string {
  const folder = fresh();
  cpSync(fixture, folder, { recursive: true });
  const json = JSON.parse(readFileSync(join(fixture, "adapter_config.json"), "utf8"));
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ ...json, ...settings }));
  const file = SafetensorsFile.open(join(fixture, "adapter_model.safetensors"));
  const tensors = [...file.tensors.values()].map(({ name, shape }) => {
    return { name, shape, values: file.read(name), dtype: "F32" as const };
  });
  file.close();
  writeSafetensors(join(folder, "adapter_model.safetensors"), change(tensors));
  return folder;
}

const renamed = (rename: (name: string) => string) => (tensors: TensorToWrite[]) =>
  tensors.map((tensor) => ({ ...tensor, name: rename(tensor.name) }));

describe("loading", () => {
  test.each(families)("the %s fixture, every value where it belongs", (family) => {
    const folder = `test/fixtures/${family}`;
    const model = readModelConfig(folder);
    const adapter = loadPeft(folder, model);
    expect(adapter).toMatchObject({ rank: 4, alpha: 8, scale: 2, rankStabilised: false });
    expect(adapter.layers.map((layer) => Object.keys(layer).sort())).toEqual(model.layers.map((l) => mapsOf(l).sort()));
    const file = SafetensorsFile.open(join(folder, "adapter_model.safetensors"));
    const name = "base_model.model.model.layers.1.mlp.down_proj.lora_";
    expect(adapter.layers[1]!.down!.a).toEqual(file.read(`${name}A.weight`));
    expect(adapter.layers[1]!.down!.b).toEqual(file.read(`${name}B.weight`));
    file.close();
  });

  test("names without PEFT's prefix, with an adapter name, and some modules only", () => {
    const reference = loadPeft(fixture, config).version;
    const bare = changed(
      {},
      renamed((name) => name.replace("base_model.model.", "")),
    );
    const named = changed(
      {},
      renamed((name) => name.replace(/(lora_[AB])/, "$1.default")),
    );
    expect(loadPeft(bare, config).version).toBe(reference);
    expect(loadPeft(named, config).version).toBe(reference);
    const queries = changed({ target_modules: ["self_attn.q_proj"] }, (all) =>
      all.filter(({ name }) => name.includes("layers.1.self_attn.q_proj")),
    );
    expect(loadPeft(queries, config).layers.map((layer) => Object.keys(layer))).toEqual([[], ["q"]]);
  });

  test("rank-stabilised scale, all-linear, a regular expression that is never run", () => {
    expect(loadPeft(changed({ use_rslora: true }), config).scale).toBe(4);
    expect(loadPeft(changed({ target_modules: "all-linear" }), config).rank).toBe(4);
    expect(loadPeft(changed({ target_modules: "(a+)+$" }), config).rank).toBe(4);
    expect(loadPeft(changed({ rank_pattern: {}, alpha_pattern: {}, modules_to_save: null }), config).rank).toBe(4);
  });

  test.each(["F16", "BF16"] as const)("%s weights", (dtype) => {
    const exact = (all: TensorToWrite[]) =>
      all.map((one) => ({ ...one, values: one.values.map((v) => Math.round(v * 64) / 64) }));
    const narrow = changed({}, (all) => exact(all).map((tensor) => ({ ...tensor, dtype })));
    const loaded = loadPeft(narrow, config);
    expect(loaded.version).toBe(loadPeft(changed({}, exact), config).version);
  });
});

describe("refused adapters", () => {
  test.each<[object, RegExp]>([
    [{ peft_type: "IA3" }, /peft_type must be "LORA".*found "IA3"/],
    [{ use_dora: true }, /use_dora asks for DoRA, which is not supported/],
    [{ modules_to_save: ["lm_head"] }, /modules_to_save asks for fully trained modules/],
    [{ bias: "all" }, /bias must be "none"/],
    [{ rank_pattern: { q_proj: 8 } }, /rank_pattern asks for/],
    [{ alpha_pattern: { q_proj: 8 } }, /alpha_pattern asks for/],
    [{ layer_replication: [[0, 2]] }, /layer_replication asks for/],
    [{ init_lora_weights: "pissa_niter_16" }, /init_lora_weights must be an initialisation that leaves the base/],
    [{ r: 0 }, /r must be a positive integer, found 0/],
    [{ r: 8 }, /has shape \[4,96\], expected \[8,96\] for rank 8/],
    [{ lora_alpha: "8" }, /lora_alpha must be a number/],
    [{ target_modules: ["q_proj"] }, /is not covered by target_modules/],
    [{ exclude_modules: ["q_proj"] }, /is not covered by target_modules/],
    [{ layers_to_transform: [0] }, /layers\.1\..* is not covered by target_modules/],
    [{ layers_to_transform: "all" }, /layers_to_transform must be a layer's number/],
    [{ target_modules: null }, /target_modules must be a list of strings, it is missing/],
  ])("settings %j", (settings, message) => {
    const folder = changed(settings);
    expect(() => loadPeft(folder, config)).toThrow(message);
    expect(() => loadPeft(folder, config)).toThrow(CheckpointError);
  });

  test.each<[string, (tensors: TensorToWrite[]) => TensorToWrite[], RegExp]>([
    [
      "an adapted head",
      renamed((n) => n.replace("model.layers.0.self_attn.q_proj", "lm_head")),
      /none of this model's LoRA weights/,
    ],
    ["experts", renamed((n) => n.replace("mlp.up_proj", "mlp.experts.0.up_proj")), /none of this model's LoRA weights/],
    ["embeddings", renamed((n) => n.replace("lora_A", "lora_embedding_A")), /none of this model's LoRA weights/],
    ["path tricks in names", renamed((n) => n.replace("base_model", "../base_model")), /none of this model's LoRA/],
    [
      "a layer too many",
      renamed((n) => n.replace("layers.1", "layers.2")),
      /a layer the model does not have \(it has 2\)/,
    ],
    ["no weights", () => [], /has no LoRA weights/],
    [
      "a missing B",
      (all) => all.filter(({ name }) => !name.endsWith("k_proj.lora_B.weight")),
      /has no lora_B for layers.0.self_attn.k_proj/,
    ],
    ["a missing A", (all) => all.filter(({ name }) => !name.endsWith("k_proj.lora_A.weight")), /has no lora_A for/],
    [
      "two adapters in one file",
      (all) => [...all, { ...all[0]!, name: all[0]!.name.replace("lora_A", "lora_A.other") }],
      /is there twice/,
    ],
    [
      "huge",
      (all) => all.map((t) => ({ ...t, values: t.values.map(() => -1e30) })),
      /lora_A.weight" has the value -1\.0+\d*e\+30/,
    ],
    ["not a number", (all) => all.map((t) => ({ ...t, values: t.values.map(() => Number.NaN) })), /the value NaN at 0/],
  ])("weights: %s", (_, change, message) => {
    const folder = changed({}, change);
    expect(() => loadPeft(folder, config)).toThrow(message);
    expect(() => loadPeft(folder, config)).toThrow(CheckpointError);
  });

  test("an adapter of another model", () => {
    expect(() => loadPeft("test/fixtures/qwen3", config)).toThrow(
      /k_proj.lora_B.weight" has shape \[48,4\], expected \[32,4\]/,
    );
  });

  test("no files, pickled weights", () => {
    const folder = fresh();
    expect(() => loadPeft(folder, config)).toThrow(/adapter_config.json: no such file/);
    cpSync(fixture, folder, { recursive: true });
    rmSync(join(folder, "adapter_model.safetensors"));
    expect(() => loadPeft(folder, config)).toThrow(/has no adapter_model.safetensors$/);
    writeFileSync(join(folder, "adapter_model.bin"), "");
    expect(() => loadPeft(folder, config)).toThrow(/adapter_model.bin must be converted/);
  });
});

test.each(["experts.3.up_proj", "experts.base_layer", "gate"])("refuses weights for mlp.%s", (module) => {
  const ofExperts = renamed((name) => name.replace(/layers\.0\..*(?=\.lora)/, `layers.0.mlp.${module}`));
  const folder = changed({}, (all) => ofExperts(all.slice(0, 1)));
  const sparse = readModelConfig("test/fixtures/qwen3-moe");
  expect(() => loadPeft(folder, sparse)).toThrow(/changes experts or their router/);
});

describe("saving", () => {
  test.each(families)("the %s adapter comes back bit for bit", (family) => {
    const source = `test/fixtures/${family}`;
    const model = readModelConfig(source);
    const folder = join(fresh(), "deep", "er");
    savePeft(folder, loadPeft(source, model), model, { baseModel: family });
    const again = loadPeft(folder, model);
    expect(again).toEqual(loadPeft(source, model));
    const tensors = (path: string) => {
      const file = SafetensorsFile.open(join(path, "adapter_model.safetensors"));
      return new Map([...file.tensors.keys()].sort().map((name) => [name, file.read(name)]));
    };
    expect(tensors(folder)).toEqual(tensors(source));
    const settings = (path: string) => {
      const json = JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8"));
      return { ...json, target_modules: json.target_modules.toSorted() };
    };
    const [saved, given] = [settings(folder), settings(source)];
    expect(Object.keys(saved)).toContain("use_rslora");
    for (const key of Object.keys(saved)) if (key in given) expect(saved[key], key).toEqual(given[key]);
    expect(readdirSync(join(folder, "..", "..")).length + readdirSync(join(folder, "..")).length).toBe(2);
  });

  test("an existing folder is never overwritten", () => {
    const folder = fresh();
    const adapter = loadPeft(fixture, config);
    savePeft(folder, adapter, config, { baseModel: "x" });
    expect(() => savePeft(folder, adapter, config, { baseModel: "y" })).toThrow(/exists already/);
    expect(readFileSync(join(folder, "adapter_config.json"), "utf8")).toContain('"x"');
  });

  test("a failure leaves nothing behind", () => {
    const folder = join(fresh(), "adapter");
    const adapter = loadPeft(fixture, config);
    const torn = { ...adapter, layers: [{ q: { a: new Float32Array(3), b: new Float32Array(3) } }] };
    expect(() => savePeft(folder, torn, config, { baseModel: "x" })).toThrow(/wrong length/);
    expect(existsSync(folder)).toBe(false);
    expect(readdirSync(join(folder, ".."))).toEqual([]);
  });

  test("float32, with the metadata that PEFT writes", () => {
    const folder = fresh();
    savePeft(folder, loadPeft(fixture, config), config, { baseModel: "x" });
    const file = SafetensorsFile.open(join(folder, "adapter_model.safetensors"));
    expect(new Set([...file.tensors.values()].map((entry) => entry.dtype))).toEqual(new Set(["F32"]));
    expect(file.metadata).toEqual({ format: "pt" });
    file.close();
  });
});

describe("versions", () => {
  const content = () => {
    const pair = (a: number, b: number): LoraPair => {
      return { a: new Float32Array(2 * 64).fill(a), b: new Float32Array(64 * 2).fill(b) };
    };
    return { rank: 2, alpha: 4, rankStabilised: false, layers: [{ q: pair(1, 2), o: pair(3, 4) }, {}] };
  };
  const version = (change: (c: ReturnType<typeof content>) => object): string => {
    const base = content();
    return createAdapter(config, { ...base, ...change(base) } as unknown as LoraContent).version;
  };

  test("the same content has the same version, in any key order and however the scale came about", () => {
    const reference = version(() => ({}));
    expect(reference).toMatch(/^[0-9a-f]{64}$/);
    expect(version(({ layers: [first] }) => ({ layers: [{ o: first!.o, q: first!.q }, {}] }))).toBe(reference);
    expect(version(() => ({ alpha: 2 * Math.sqrt(2), rankStabilised: true }))).toBe(reference);
  });

  test("any change gives another version", () => {
    const versions = [
      version(() => ({})),
      version(() => ({ alpha: 5 })),
      version(({ layers: [first] }) => ({ layers: [{}, first] })),
      version(({ layers: [first] }) => ({ layers: [{ q: first!.o, o: first!.q }, {}] })),
      version(({ layers: [first] }) => ({ layers: [{ q: first!.q }, {}] })),
    ];
    expect(new Set(versions).size).toBe(versions.length);
    fc.assert(
      fc.property(fc.nat(127), fc.float({ noNaN: true, noDefaultInfinity: true }), (at, value) => {
        const changedVersion = version(({ layers: [first] }) => {
          first!.q!.a[at] = value;
          return {};
        });
        expect(changedVersion === versions[0]).toBe(value === 1);
      }),
      { numRuns: 50 },
    );
  });

  test("content that does not fit the model is refused", () => {
    expect(() => version(() => ({ rank: 3 }))).toThrow(/layer 0 self_attn.q_proj A has 128 values, expected 192/);
    expect(() => version(() => ({ layers: [] }))).toThrow(/for 0 layers, the model has 2/);
    expect(() => version(() => ({ alpha: Number.POSITIVE_INFINITY }))).toThrow(/alpha must be a finite number/);
  });
});
