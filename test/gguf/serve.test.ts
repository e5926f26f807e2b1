// A GGUF file from the command line to a reply, with an adapter, and as the base of a training task.

import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import type { TrainerTask } from "../../src/training/contract.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";
import { fresh, run, serve } from "../support/cli-process.ts";
import { looseFetch } from "../support/test-server.ts";
import { fixtureTokenizer, writeAsGguf } from "./write-fixture.ts";

const folder = fixtureFolder("llama");

function written(type: "f32" | "q8_0", name = `llama-${type}.gguf`): string {
  return writeAsGguf(folder, join(fresh(), name), type, fixtureTokenizer(folder));
}

/** What a server says greedily, as the model and with its adapter. */
async function replies(model: string, dtype: string) {
  const flags = ["--dtype", dtype, "--port", "0", "--data", fresh(), "--api-key", "key", "--served-model-name", "base"];
  const server = await serve([model, ...flags, "--lora-modules", `tuned=${folder}`]);
  expect(server.err()).not.toMatch(/error/i);
  const body = {
    messages: [{ role: "user", content: "Hello, ünicode" }],
    max_tokens: 24,
    temperature: 0,
    logprobs: true,
  };
  const said = await Promise.all(
    ["base", "tuned"].map(async (name) => {
      const reply = await looseFetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer key", "content-type": "application/json" },
        body: JSON.stringify({ model: name, ...body }),
      });
      const { choices, usage } = await reply.json();
      return { choices, usage };
    }),
  );
  server.process.kill("SIGTERM");
  expect(await server.exit).toBe(0);
  return said;
}

describe("flywheel serve model.gguf", () => {
  it.each(["float32", "int8"])(
    "answers bit for bit as the folder does, with and without an adapter (%s)",
    async (dtype) => {
      const fromFile = await replies(written("f32"), dtype);
      expect(fromFile).toEqual(await replies(folder, dtype));
      expect(fromFile[0]).not.toEqual(fromFile[1]);
    },
  );

  it("is called after the file", async () => {
    const server = await serve([
      written("q8_0", "Tiny-Q8_0.gguf"),
      "--port",
      "0",
      "--data",
      fresh(),
      "--api-key",
      "key",
    ]);
    const reply = await looseFetch(`${server.url}/v1/models`, { headers: { authorization: "Bearer key" } });
    expect((await reply.json()).data[0].id).toBe("Tiny-Q8_0");
    server.process.kill("SIGTERM");
    expect(await server.exit).toBe(0);
  });

  it("refuses what it cannot serve with one sentence", async () => {
    const start = (model: string, ...flags: string[]) =>
      run(["serve", model, "--port", "0", "--data", fresh(), "--api-key", "key", ...flags]);
    const cut = written("q8_0");
    truncateSync(cut, 20_000);
    expect(await start(cut)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/truncated: an incomplete download/),
    });
    const other = join(fresh(), "picture.gguf");
    writeFileSync(other, readFileSync(join(folder, "config.json")));
    expect(await start(other)).toMatchObject({ code: 1, err: expect.stringMatching(/is not a GGUF file/) });
    expect(await start("missing.gguf")).toMatchObject({ code: 1, err: expect.stringMatching(/no file missing\.gguf/) });
    const torch = await start(written("f32"), "--trainer", "torch", "--dtype", "float32");
    expect(torch).toMatchObject({ code: 1, err: expect.stringMatching(/--trainer torch cannot read GGUF files/) });
  });
});

describe("training on a GGUF file", () => {
  it("gives the adapter that training on the folder gives", async () => {
    const adapters = [];
    for (const baseModel of [folder, written("f32")]) {
      const output = join(fresh(), "step");
      const batch = join(fresh(), "batch.jsonl");
      const mask = Array.from({ length: 24 }, (_, i) => (i < 10 ? 0 : 1));
      const ids = Array.from({ length: 24 }, (_, i) => 10 + i);
      const sequence = { ids, mask, oldLogprobs: Array(24).fill(-6), advantage: 1, weight: 1, group: 0 };
      writeFileSync(batch, JSON.stringify(sequence));
      const task: TrainerTask = {
        ...{ baseModel, weights: "int8", positionsPerBlock: 16, adapter: folder, optimizerState: null, batch, output },
        steps: [{ from: 0, to: 1, learningRate: 1e-3 }],
        objective: { kind: "policy", loss: RL_DEFAULTS.loss, precalculateLogprobs: false, reference: null },
        optimizer: RL_DEFAULTS.optimizer,
        tokenNumbers: null,
        ...{ threads: 1, activationBytes: 1e9 },
      };
      let model: TrainableModel | null = null;
      await runTask(task, {
        onStep: () => {},
        between: async () => {},
        async modelFor({ threads }, rank) {
          model = await TrainableModel.create({
            folder: baseModel,
            weights: "int8",
            rank,
            threads,
            positionsPerBlock: null,
          });
          return model;
        },
      });
      await (model as TrainableModel | null)?.close();
      adapters.push(readFileSync(join(output, "adapter_model.safetensors")));
    }
    expect(adapters[1]).toEqual(adapters[0]);
  });
});
