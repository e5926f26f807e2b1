import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCheckpoint } from "./checkpoint.ts";
import { CheckpointError } from "./checkpoint-file.ts";
import { eachTensor } from "./expected-tensors.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { type TensorToWrite, writeSafetensors } from "./safetensors-writer.ts";

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "checkpoint-"));
});
afterAll(() => rmSync(root, { recursive: true }));

function tensorsOf(family: string): TensorToWrite[] {
  const file = SafetensorsFile.open(`test/fixtures/${family}/model.safetensors`);
  const tensors = [...file.tensors.values()].map(({ name, shape }) => {
    return { name, shape, values: file.read(name), dtype: "F32" as const };
  });
  file.close();
  return tensors;
}

/** A folder with a fixture's config.json, possibly changed, and the given files beside it. */
function folderWith(family: string, name: string, config: object = {}): string {
  const folder = join(root, name);
  mkdirSync(folder);
  const json = JSON.parse(readFileSync(`test/fixtures/${family}/config.json`, "utf8"));
  writeFileSync(join(folder, "config.json"), JSON.stringify({ ...json, ...config }));
  return folder;
}

describe("the fixtures", () => {
  test.each(["llama", "llama3", "qwen2", "qwen3", "mistral", "gemma3"])(
    "%s opens, nothing missing, nothing left",
    (name) => {
      const checkpoint = openCheckpoint(`test/fixtures/${name}`);
      const specs = [...eachTensor(checkpoint.tensors)];
      expect(specs.map((spec) => spec.name).sort()).toEqual([...checkpoint.names].sort());
      for (const spec of specs) {
        const reader = checkpoint.tensor(spec.name);
        expect(reader.shape).toEqual(spec.shape);
        expect(reader.read().length).toBe(reader.elements);
        expect(reader.bytes().length).toBe(reader.elements * 4);
      }
      checkpoint.close();
    },
  );

  test("roles point at the right tensors", () => {
    const gemma = openCheckpoint("test/fixtures/gemma3").tensors;
    expect(gemma.head).toBeNull();
    expect(gemma.layers[1]).toMatchObject({
      norms: {
        attention: { weight: { name: "model.layers.1.input_layernorm.weight", shape: [64] }, bias: null },
        attentionPost: { weight: { name: "model.layers.1.post_attention_layernorm.weight" } },
        mlp: { weight: { name: "model.layers.1.pre_feedforward_layernorm.weight" } },
        mlpPost: { weight: { name: "model.layers.1.post_feedforward_layernorm.weight" } },
      },
      qNorm: { name: "model.layers.1.self_attn.q_norm.weight", shape: [16] },
    });
    const qwen = openCheckpoint("test/fixtures/qwen2").tensors;
    expect(qwen.layers[0]).toMatchObject({
      norms: { attentionPost: null, mlp: { weight: { name: "model.layers.0.post_attention_layernorm.weight" } } },
      linears: {
        k: { weight: { shape: [32, 64] }, bias: { name: "model.layers.0.self_attn.k_proj.bias", shape: [32] } },
        o: { weight: { shape: [64, 64] }, bias: null },
        down: { weight: { name: "model.layers.0.mlp.down_proj.weight", shape: [64, 96] } },
      },
    });
    expect(openCheckpoint("test/fixtures/mistral").tensors.head).toEqual({ name: "lm_head.weight", shape: [256, 64] });
  });
});

describe("weights that do not fit", () => {
  test("a missing tensor is named", () => {
    const folder = folderWith("llama", "missing");
    const rest = tensorsOf("llama").filter(({ name }) => name !== "model.layers.1.mlp.up_proj.weight");
    writeSafetensors(join(folder, "model.safetensors"), rest);
    expect(() => openCheckpoint(folder)).toThrow(
      `${folder}: the weights have no tensor "model.layers.1.mlp.up_proj.weight" (expected shape [96,64])`,
    );
  });

  test("an untied head is required, a tied one is optional", () => {
    const untied = folderWith("llama", "untied", { tie_word_embeddings: false });
    writeSafetensors(join(untied, "model.safetensors"), tensorsOf("llama"));
    expect(() => openCheckpoint(untied)).toThrow(/no tensor "lm_head.weight"/);
    const tied = folderWith("mistral", "tied", { tie_word_embeddings: true });
    writeSafetensors(join(tied, "model.safetensors"), tensorsOf("mistral"));
    const checkpoint = openCheckpoint(tied);
    expect(checkpoint.tensors.head).toBeNull();
  });

  test("a wrong shape is an error that gives both shapes, even if their sizes are equal", () => {
    const folder = folderWith("llama", "shape");
    const tensors = tensorsOf("llama").map((tensor) =>
      tensor.name === "model.layers.0.mlp.down_proj.weight" ? { ...tensor, shape: [96, 64] } : tensor,
    );
    writeSafetensors(join(folder, "model.safetensors"), tensors);
    expect(() => openCheckpoint(folder)).toThrow(
      /model.safetensors: tensor "model.layers.0.mlp.down_proj.weight" has the wrong shape: expected \[64,96\] after config.json, found \[96,64\]/,
    );
  });

  test("integer weights are refused", () => {
    const folder = folderWith("llama", "dtype");
    const path = join(folder, "model.safetensors");
    writeSafetensors(path, tensorsOf("llama"));
    const bytes = readFileSync(path);
    const name = bytes.indexOf('"model.norm.weight"');
    bytes.write("I32", bytes.indexOf("F32", name), "latin1");
    writeFileSync(path, bytes);
    expect(() => openCheckpoint(folder)).toThrow(/"model.norm.weight" has dtype I32, expected F32, F16 or BF16/);
  });

  test("no weights, pickled weights, no folder, no config", () => {
    const folder = folderWith("llama", "empty");
    expect(() => openCheckpoint(folder)).toThrow(/has neither model.safetensors nor model.safetensors.index.json$/);
    symlinkSync(join(folder, "gone"), join(folder, "model.safetensors"));
    expect(() => openCheckpoint(folder)).toThrow(/; model.safetensors is a link to a file that is not there$/);
    rmSync(join(folder, "model.safetensors"));
    writeFileSync(join(folder, "pytorch_model.bin"), "");
    expect(() => openCheckpoint(folder)).toThrow(/pytorch_model.bin is a pickled checkpoint: convert it/);
    expect(() => openCheckpoint(join(root, "nowhere"))).toThrow(/nowhere: no such folder/);
    const bare = join(root, "bare");
    mkdirSync(bare);
    expect(() => openCheckpoint(bare)).toThrow(/config.json: no such file/);
    writeFileSync(join(bare, "config.json"), "[".repeat(100_000));
    expect(() => openCheckpoint(bare)).toThrow(/nested deeper/);
    writeFileSync(join(bare, "config.json"), '{"model_type":');
    expect(() => openCheckpoint(bare)).toThrow(CheckpointError);
  });
});

describe("other names and shards", () => {
  test.each([
    ["language_model.model.", "language_model.lm_head.weight"],
    ["model.language_model.", "lm_head.weight"],
  ])("multimodal Gemma keeps its text model under %s", (prefix, headName) => {
    const config = JSON.parse(readFileSync("test/fixtures/gemma3/config.json", "utf8"));
    const folder = join(root, `gemma-${prefix}`);
    mkdirSync(folder);
    const multimodal = {
      model_type: "gemma3",
      text_config: config,
      tie_word_embeddings: false,
      eos_token_id: [1, 106],
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify(multimodal));
    const text = tensorsOf("gemma3").map((tensor) => ({ ...tensor, name: tensor.name.replace(/^model\./, prefix) }));
    const head = { ...text.find(({ name }) => name.endsWith("embed_tokens.weight"))!, name: headName };
    const vision = { ...head, name: "vision_tower.patch_embedding.weight" };
    writeSafetensors(join(folder, "model.safetensors"), [...text, head, vision]);
    const checkpoint = openCheckpoint(folder);
    expect(checkpoint.tensors.head!.name).toBe(headName);
    expect([...eachTensor(checkpoint.tensors)].map(({ name }) => name)).not.toContain(vision.name);
    expect(checkpoint.config.eosTokenIds).toEqual([1, 106]);
  });

  function sharded(name: string): { folder: string; index: { weight_map: Record<string, string> } } {
    const folder = folderWith("qwen3", name);
    const tensors = tensorsOf("qwen3");
    const index = { metadata: {}, weight_map: {} as Record<string, string> };
    for (const [number, part] of [tensors.slice(0, 11), tensors.slice(11)].entries()) {
      const shard = `model-0000${number + 1}-of-00002.safetensors`;
      writeSafetensors(join(folder, shard), part);
      for (const tensor of part) index.weight_map[tensor.name] = shard;
    }
    writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify(index));
    return { folder, index };
  }

  test("shards read as one", () => {
    const { folder } = sharded("shards");
    const checkpoint = openCheckpoint(folder);
    const whole = openCheckpoint("test/fixtures/qwen3");
    for (const name of whole.names) {
      expect(Buffer.compare(checkpoint.tensor(name).bytes(), whole.tensor(name).bytes()), name).toBe(0);
    }
    checkpoint.close();
    expect(() => checkpoint.tensor("lm_head.weight").read()).toThrow(/is closed/);
    expect(() => checkpoint.tensor("nothing")).toThrow(/no tensor "nothing"/);
  });

  test("a missing shard and a misplaced tensor are named", () => {
    const { folder, index } = sharded("incomplete");
    const write = () => writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify(index));
    index.weight_map["model.norm.weight"] = "model-00001-of-00002.safetensors";
    write();
    expect(() => openCheckpoint(folder)).toThrow(/00001-of-00002.safetensors: has no tensor "model.norm.weight"/);
    rmSync(join(folder, "model-00002-of-00002.safetensors"));
    expect(() => openCheckpoint(folder)).toThrow(/model-00002-of-00002.safetensors: shard is missing/);
  });

  test.each([
    "../model.safetensors",
    "/etc/model.safetensors",
    "a/b.safetensors",
    "..\\x.safetensors",
    "model.bin",
    "",
    ".safetensors",
    "x\0.safetensors",
    7,
    null,
  ])("a shard called %j is refused before it is opened", (shard) => {
    const folder = folderWith("qwen3", `trick-${Math.random()}`);
    cpSync("test/fixtures/qwen3/model.safetensors", join(root, "model.safetensors"));
    writeFileSync(
      join(folder, "model.safetensors.index.json"),
      JSON.stringify({ weight_map: { "lm_head.weight": shard } }),
    );
    expect(() => openCheckpoint(folder)).toThrow(
      /weight_map places "lm_head.weight" in .* which is not a plain file name/,
    );
  });

  test("an index without a weight map is refused", () => {
    const folder = folderWith("qwen3", "mapless");
    writeFileSync(join(folder, "model.safetensors.index.json"), '{"weight_map": []}');
    expect(() => openCheckpoint(folder)).toThrow(/weight_map must be an object/);
  });
});
