// Packs of sequences, from the setting of a job to the trainer's result. The embedded trainer computes; the fake behind
// a command gives metrics that depend on the sequences of every step, so equal metrics mean that it got an equal plan.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { benchesOfTest, ended, newModel, scored, stepFolder, submit } from "../../test/support/training-service.ts";
import { compiledEntry } from "../system/package.ts";
import type { RlConfig } from "./config.ts";
import { CommandProcess } from "./process/command-process.ts";
import { ProcessTrainer } from "./process/process-trainer.ts";
import { ForkedProcess, type TrainerProcess } from "./process/trainer-process.ts";

const FAKE = fileURLToPath(new URL("../../test/support/trainer-process.mjs", import.meta.url));
const command = `"${process.execPath}" "${FAKE}"`;

const TRAINERS: readonly [string, () => TrainerProcess][] = [
  ["the embedded trainer", () => new ForkedProcess(compiledEntry(import.meta.url, "./onnx/trainer-entry.ts"))],
  ["a trainer behind a command", () => new CommandProcess({ command, env: {}, startMs: 20_000, pingMs: 10_000 })],
];

/** Each sequence has 11 tokens. */
const GROUPS = ["a1 <e>", "a3 <e>", "yes <e>"].map((reply) => scored([reply, 1], ["a2 <e>", 0]));

const start = benchesOfTest();

describe.each(TRAINERS)("with %s", (_name, startProcess) => {
  async function trained(config: Partial<RlConfig>) {
    const trainer = new ProcessTrainer({ start: startProcess, idleMs: 60_000, cancelGraceMs: 1000 });
    const bench = await start({ trainer });
    const model = await newModel(bench);
    const events = await ended(bench, await submit(bench, model.id, GROUPS, { config }));
    expect(events.at(-1)).toMatchObject({ type: "training_ended", data: { step: 1 } });
    const file = join(stepFolder(bench, model.id, 1), "adapter_model.safetensors");
    return {
      steps: events.filter(({ type }) => type === "gradient_step").map(({ data }) => data),
      adapter: readFileSync(file),
    };
  }

  it("a pack trains exactly as the accumulation of its sequences does", async () => {
    const [packed, accumulated] = [
      await trained({ packedSequenceLength: 32 }),
      await trained({ gradAccumulationSequences: 2 }),
    ];
    expect(packed.steps).toHaveLength(3);
    expect(packed.steps).toEqual(accumulated.steps);
    expect(packed.adapter.equals(accumulated.adapter)).toBe(true);
    const joined = await trained({ packedSequenceLength: 32, gradAccumulationSequences: 2 });
    expect(joined.steps).toHaveLength(2);
    expect(joined.adapter.equals(packed.adapter)).toBe(false);
  });
});
