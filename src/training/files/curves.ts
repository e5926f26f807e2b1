// Writes training curves for tools that tail or plot files: metrics.jsonl with one line per gradient step, and one
// TensorBoard event file per policy step. Both are made from the recorded events, so a curve that a crash cut off is
// completed by the next write, and nothing is written twice.

import { mkdirSync } from "node:fs";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KeyedSerialWork } from "../../pacing/work.ts";
import type { TrainingContext } from "../context.ts";
import { type CurveLine, cutCurve } from "./curve-file.ts";
import { encodeEventFile, type ScalarPoint } from "./tensorboard.ts";

type CurveContext = Pick<TrainingContext, "modelTable" | "eventTable" | "workspace" | "log">;

export class CurveWriter {
  readonly #context: CurveContext;
  /** By model. */
  readonly #writes = new KeyedSerialWork();

  constructor(context: CurveContext) {
    this.#context = context;
  }

  /** Appends what is missing for a model, one call after the other. Logs failures; the next call makes up for them. */
  write(modelId: string): Promise<void> {
    return this.#writes
      .run(modelId, () => appendMissing(modelId, this.#context))
      .catch((error) => this.#context.log.error("curves could not be written", { model: modelId, error }));
  }

  /** Waits for the writes that have begun. */
  async close(): Promise<void> {
    await this.#writes.idle();
  }
}

async function appendMissing(modelId: string, { modelTable, eventTable, workspace }: CurveContext): Promise<void> {
  const folder = workspace.curvesFolder(modelId);
  const file = join(folder, "metrics.jsonl");
  const end = cutCurve(file);
  let gradientSteps = end.gradientStep;
  for (const { step, jobId } of await modelTable.stepsAfter(modelId, end.step - 1)) {
    if (jobId === null) continue;
    const written = step === end.step ? end.lines : 0;
    const before = gradientSteps - written;
    const recorded = (await eventTable.list(jobId, null, Number.MAX_SAFE_INTEGER)) ?? [];
    const lines = recorded
      .filter(({ type }) => type === "gradient_step")
      .map(({ data, createdAt }, i): CurveLine => {
        // the trainer counts from the start of the job
        const { gradient_step: _, ...metrics } = data as Record<string, number>;
        return { step, gradient_step: before + i + 1, time: createdAt, ...metrics };
      });
    if (lines.length <= written) continue;
    gradientSteps = before + lines.length;
    mkdirSync(folder, { recursive: true });
    await writeFile(join(folder, `events.out.tfevents.step-${step}`), encodeEventFile(lines.map(scalarPoint)));
    const missing = lines.slice(written).map((line) => `${JSON.stringify(line)}\n`);
    await appendFile(file, missing.join(""));
  }
}

function scalarPoint({ step, gradient_step, time, ...metrics }: CurveLine): ScalarPoint {
  const values: Record<string, number> = { "train/policy_step": step };
  for (const [name, value] of Object.entries(metrics)) {
    values[name.includes("/") ? name : `train/${name}`] = value as number;
  }
  return { step: gradient_step, time: Date.parse(time) / 1000, values };
}
