// Checkpoints written as GGUF files and read again: the same configuration, weights and logits as from the folder.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GgmlType } from "../../bench/models/ggml-blocks.ts";
import { type GgufTensor, type GgufValue, writeGguf } from "../../bench/models/gguf.ts";
import { type Checkpoint, openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import { eachTensor } from "../../src/model/checkpoint/expected-tensors.ts";
import { GgufFile } from "../../src/model/gguf/gguf-file.ts";
import { effectiveWeights } from "../../src/model/linear/linear.ts";
import { matrixOf, rowsOfTensors } from "../../src/model/linear/matrix-rows.ts";
import {
  blocksFrom,
  chunk,
  families,
  fixtureFolder,
  logSoftmax,
  openRunner,
  Reference,
  runAlone,
  worstDifference,
} from "../reference/runner-driver.ts";
import { writeWideCheckpoint } from "../reference/wide-checkpoint.ts";
import { writeAsGguf } from "./write-fixture.ts";

const scratch = mkdtempSync(join(tmpdir(), "gguf-checkpoint-"));
afterAll(() => rmSync(scratch, { recursive: true }));

function withCheckpoints<T>(places: readonly string[], use: (...opened: Checkpoint[]) => T): T {
  const opened = places.map(openCheckpoint);
  try {
    return use(...opened);
  } finally {
    for (const checkpoint of opened) checkpoint.close();
  }
}

describe.each(["llama", "llama3", "qwen2", "qwen3"] as const)("a %s checkpoint in f32", (family) => {
  const folder = fixtureFolder(family);
  const path = join(scratch, `${family}.gguf`);
  beforeAll(() => {
    writeAsGguf(folder, path, "f32");
  });

  it("has the configuration and the very weights of its folder", () => {
    withCheckpoints([folder, path], (original, read) => {
      const rope = (checkpoint: Checkpoint) => checkpoint.config.layers.map((layer) => layer.rope?.theta);
      expect({ ...read.config, rmsNormEps: null, normEps: null, layers: null }).toEqual({
        ...original.config,
        ...{ rmsNormEps: null, normEps: null, layers: null },
      });
      expect(rope(read)).toEqual(rope(original));
      expect(read.unused).toEqual([]);
      for (const { name } of eachTensor(original.tensors)) {
        expect(read.tensor(name).read(), name).toEqual(original.tensor(name).read());
      }
    });
  });

  it("gives the logits of the reference", async () => {
    const [runner, reference] = [await openRunner(path), new Reference(family)];
    for (const prompt of [0, 1, 2]) {
      const ids = reference.ids(`ids.${prompt}`);
      const logits = await runAlone(runner, chunk(ids, 0, blocksFrom(0, ids.length, runner.positionsPerBlock)));
      expect(worstDifference(logits, reference.floats(`logits.${prompt}`), runner.vocabSize)).toBeLessThan(1e-4);
    }
    reference.close();
    await runner.close();
  });
});

/** [rows, columns] -> [columns, rows] */
function turn(values: Float32Array, rows: number): Float32Array {
  const columns = values.length / rows;
  const turned = new Float32Array(values.length);
  for (const [i, value] of values.entries()) turned[(i % columns) * rows + Math.floor(i / columns)] = value;
  return turned;
}

/** Files cannot state Mistral's window, nor a layer without experts among those that have some. */
const stated = families.filter((family) => family !== "mistral" && family !== "qwen3-moe-plain");

describe.each(stated)("a small model like %s", (family) => {
  const folder = family === "gpt2" ? fixtureFolder(family) : join(scratch, `small-${family}`);
  const path = join(scratch, `small-${family}.gguf`);
  beforeAll(() => {
    if (family !== "gpt2") {
      mkdirSync(folder);
      // One layer: the first of every family is one that a file can state.
      writeWideCheckpoint(folder, { family, hidden: 32, intermediate: 64, heads: 4, kvHeads: 2, headDim: 8 });
    }
    writeAsGguf(folder, path, "f32");
  });

  it("has the same weights and logits as its folder", async () => {
    withCheckpoints([folder, path], (original, read) => {
      expect(read.unused).toEqual([]);
      const norms = original.config.normWeightOffset;
      for (const { name, shape } of eachTensor(original.tensors)) {
        const expected = original
          .tensor(name)
          .read()
          .map((value) => (name.includes("norm") ? value + norms : value));
        // GPT-2's folders have the maps [in, out].
        const turned = /\.c_(attn|proj|fc)\.weight$/.test(name) ? turn(expected, shape[0]!) : expected;
        expect(read.tensor(name).read(), name).toEqual(turned);
      }
    });
    const ids = Array.from({ length: 24 }, (_, i) => 3 + ((7 * i) % 200));
    const [fromFolder, fromFile] = await Promise.all(
      [folder, path].map(async (place) => {
        const runner = await openRunner(place);
        const logits = await runAlone(runner, chunk(ids, 0, blocksFrom(0, ids.length, runner.positionsPerBlock)));
        await runner.close();
        return logits;
      }),
    );
    expect(worstDifference(fromFile!, fromFolder!, 256)).toBeLessThan(1e-5);
  });
});

describe("every format", () => {
  const folder = join(scratch, "wide");
  /** Largest error, in parts of the largest weight that shares a scale; bfloat16 keeps 8 bits of each weight. */
  const bounds: Record<GgmlType, number> = {
    ...{ f32: 0, f16: 1e-3, bf16: 1 / 256, q8_0: 1 / 200, q6_K: 1 / 50, q4_0: 1 / 7, q4_K: 1 / 8 },
  };
  beforeAll(() => {
    mkdirSync(folder);
    const widths = { hidden: 256, intermediate: 512, heads: 4, kvHeads: 2, headDim: 64 };
    writeWideCheckpoint(folder, { family: "llama", ...widths });
    for (const type of Object.keys(bounds) as GgmlType[]) writeAsGguf(folder, join(scratch, `${type}.gguf`), type);
  });

  it.each(Object.entries(bounds))("%s is read with the error of its rounding", (type, bound) => {
    withCheckpoints([folder, join(scratch, `${type}.gguf`)], (original, read) => {
      const { weight } = read.tensors.layers[0]!.linears.q!;
      expect(read.tensor(weight.name).dtype).toBe(type.toUpperCase());
      for (const { name } of eachTensor(original.tensors)) {
        const [expected, found] = [original.tensor(name).read(), read.tensor(name).read()];
        const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - found[i]!)), 0);
        expect(worst / largest, name).toBeLessThanOrEqual(bound);
      }
    });
  });

  it.each(Object.keys(bounds))("%s gives parts at any place as the whole tensor has them", (type) => {
    withCheckpoints([join(scratch, `${type}.gguf`)], (read) => {
      for (const name of [read!.tensors.layers[0]!.linears.q!.weight.name, read!.tensors.embedding.name]) {
        const tensor = read!.tensor(name);
        const whole = tensor.read();
        const place = fc.tuple(fc.nat(whole.length - 1), fc.nat(700));
        fc.assert(
          fc.property(place, ([first, length]) => {
            const part = new Float32Array(Math.min(length, whole.length - first));
            tensor.readPart(first, part);
            expect(part).toEqual(whole.slice(first, first + part.length));
          }),
          { numRuns: 20 },
        );
      }
    });
  });

  it("int4 keeps the weights of q4_0 as they are", () => {
    withCheckpoints([join(scratch, "q4_0.gguf")], (read) => {
      for (const { weight } of Object.values(read!.tensors.layers[0]!.linears)) {
        const tensor = read!.tensor(weight.name);
        expect(effectiveWeights(rowsOfTensors([tensor]), "int4"), weight.name).toEqual(tensor.read());
      }
    });
  });

  it("int8 keeps the weights of q8_0 as they are if every output has one step", () => {
    const [out, inputs] = [8, 96];
    // Every block of 32 has the largest magnitude, so all blocks of an output get the same scale.
    const steps = (i: number) => (i % 32 === 5 ? -127 : ((i * 53) % 255) - 127);
    const values = Float32Array.from({ length: out * inputs }, (_, i) => steps(i) * 2 ** -(4 + Math.floor(i / inputs)));
    const path = join(scratch, "steps.gguf");
    writeGguf(path, {}, [{ name: "w", shape: [out, inputs], type: "q8_0", read: () => values }]);
    const file = GgufFile.open(path);
    const stored = new Float32Array(values.length);
    file.readValues(file.tensors.get("w")!, 0, stored);
    file.close();
    expect(stored).toEqual(values);
    expect(effectiveWeights(matrixOf(stored, out, inputs), "int8")).toEqual(stored);
  });

  it.each(["q8_0", "q4_K", "q6_K"])("%s in int8 stays close to the file's own numbers", async (type) => {
    const path = join(scratch, `${type}.gguf`);
    const ids = Array.from({ length: 40 }, (_, i) => 3 + ((7 * i) % 200));
    const [exact, rounded] = await Promise.all(
      (["float32", "int8"] as const).map(async (weightType) => {
        const runner = await openRunner(path, { weightType });
        const logits = await runAlone(runner, chunk(ids, 0, blocksFrom(0, ids.length, runner.positionsPerBlock)));
        await runner.close();
        return logits;
      }),
    );
    let divergence = 0;
    for (let at = 0; at < exact!.length; at += 256) {
      const [p, q] = [exact!, rounded!].map((logits) => logSoftmax(logits.subarray(at, at + 256)));
      for (const [i, logprob] of p!.entries()) divergence += Math.exp(logprob) * (logprob - q![i]!);
    }
    expect(divergence / ids.length).toBeLessThan(1e-3);
  });
});

describe("several parts", () => {
  const count: GgufValue = { type: "uint32", value: 2 };
  const part = (number: number) => join(scratch, `split-0000${number}-of-00002.gguf`);
  const { tensors, entries } = contents();

  /** What a whole file holds, for writing it again in parts. */
  function contents(): { tensors: GgufTensor[]; entries: Record<string, GgufValue> } {
    const whole = GgufFile.open(writeAsGguf(fixtureFolder("qwen3"), join(scratch, "whole.gguf"), "f32"));
    const read = (tensor: Parameters<GgufFile["readValues"]>[0]) => {
      const values = new Float32Array(tensor.elements);
      whole.readValues(tensor, 0, values);
      return values;
    };
    const tensors = [...whole.tensors.values()].map((tensor): GgufTensor => {
      const values = read(tensor);
      return { name: tensor.name, shape: tensor.shape, type: "f32", read: () => values };
    });
    const entries: Record<string, GgufValue> = {};
    for (const key of whole.metadata.keys().filter((name) => /^(general\.arch|qwen3\.)/.test(name))) {
      if (key === "general.architecture") entries[key] = { type: "string", value: "qwen3" };
      else if (/eps|freq_base/.test(key)) entries[key] = { type: "float32", value: whole.metadata.number(key) };
      else entries[key] = { type: "uint32", value: whole.metadata.number(key) };
    }
    whole.close();
    return { tensors, entries };
  }

  it("are one checkpoint, given the first", () => {
    writeGguf(part(1), { ...entries, "split.count": count }, tensors.slice(0, 5));
    writeGguf(part(2), { "split.count": count, "split.no": { type: "uint32", value: 1 } }, tensors.slice(5));
    withCheckpoints([fixtureFolder("qwen3"), part(1)], (original, read) => {
      for (const { name } of eachTensor(original.tensors)) {
        expect(read.tensor(name).read()).toEqual(original.tensor(name).read());
      }
    });
    expect(() => openCheckpoint(part(2))).toThrow(/is one of 2 parts: give the first one/);
    rmSync(part(2));
    expect(() => openCheckpoint(part(1))).toThrow(/part 2 of 2 is missing/);
  });

  it("must say what they are", () => {
    const path = join(scratch, "other.gguf");
    writeGguf(path, { "general.architecture": { type: "string", value: "mamba" } }, []);
    expect(() => openCheckpoint(path)).toThrow(/architecture "mamba" is not supported \(supported: llama, /);
    writeGguf(path, { ...entries, "qwen3.expert_count": { type: "uint32", value: 8 } }, tensors);
    expect(() => openCheckpoint(path)).toThrow(/models of architecture qwen3 with experts are not supported/);
    writeGguf(path, entries, tensors.slice(1));
    expect(() => openCheckpoint(path)).toThrow(/has no tensor "token_embd.weight"/);
    writeGguf(path, entries, tensors.slice(0, -1));
    expect(() => openCheckpoint(path)).toThrow(/the weights have no tensor "model\.layers\.1\./);
    expect(() => openCheckpoint(join(scratch, "none.gguf"))).toThrow(/no such file/);
  });
});
