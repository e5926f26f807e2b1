// Training curves on disk, for tools that tail or plot files: metrics.jsonl (one object per gradient step, appended) and
// one TensorBoard event file per policy step. Made from the recorded events, so a curve that a crash cut short, within a
// step or a line, is completed at the next opportunity and nothing is written twice.

import { mkdirSync } from "node:fs";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EventTable } from "../../store/event-table.ts";
import type { ModelTable } from "../../store/model-table.ts";
import { type CurveLine, cutCurve } from "./curve-file.ts";
import { encodeEventFile, type ScalarPoint } from "./tensorboard.ts";
import type { Workspace } from "./workspace.ts";

export interface CurvesDeps {
  models: ModelTable;
  events: EventTable;
  workspace: Workspace;
}

/** Appends what is missing for a model. One call at a time per model. */
export async function writeCurves(modelId: string, { models, events, workspace }: CurvesDeps): Promise<void> {
  const folder = workspace.curvesFolder(modelId);
  const file = join(folder, "metrics.jsonl");
  const end = cutCurve(file);
  let gradientSteps = end.gradientStep;
  for (const { step, jobId } of models.stepsAfter(modelId, end.step - 1)) {
    if (jobId === null) continue;
    const written = step === end.step ? end.lines : 0;
    const before = gradientSteps - written;
    const recorded = events.list(jobId, null, Number.MAX_SAFE_INTEGER) ?? [];
    const lines = recorded
      .filter(({ type }) => type === "gradient_step")
      .map(({ data, createdAt }, i): CurveLine => {
        // the trainer counts from the job's beginning
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
