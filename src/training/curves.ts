// Training curves on disk, for tools that tail or plot files: metrics.jsonl (one object per gradient step, appended) and
// one TensorBoard event file per policy step. Made from the recorded events, so a curve that a crash cut short is
// completed at the next opportunity and nothing is written twice.

import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeEventFile, type ScalarPoint } from "../observe/tensorboard.ts";
import type { EventTable } from "../store/event-table.ts";
import type { ModelTable } from "../store/model-table.ts";
import type { Workspace } from "./workspace.ts";

export interface CurvesDeps {
  models: ModelTable;
  events: EventTable;
  workspace: Workspace;
}

/** Enough for the last lines. */
const TAIL_BYTES = 1 << 16;

interface CurveLine {
  /** The policy step this gradient step helped to make. */
  step: number;
  /** Gradient steps since the model began. */
  gradient_step: number;
  time: string;
  [metric: string]: number | string;
}

/** Appends what is missing for a model. One call at a time per model. */
export async function writeCurves(modelId: string, { models, events, workspace }: CurvesDeps): Promise<void> {
  const folder = workspace.curvesFolder(modelId);
  const file = join(folder, "metrics.jsonl");
  const last = lastLine(file);
  let gradientStep = last?.gradient_step ?? 0;
  for (const { step, jobId } of models.stepsAfter(modelId, last?.step ?? -1)) {
    if (jobId === null) continue;
    const recorded = events.list(jobId, null, Number.MAX_SAFE_INTEGER) ?? [];
    const lines = recorded
      .filter(({ type }) => type === "gradient_step")
      .map(({ data, createdAt }): CurveLine => {
        const metrics = data as Record<string, number>;
        return { step, gradient_step: ++gradientStep, time: createdAt, ...metrics };
      });
    if (lines.length === 0) continue;
    mkdirSync(folder, { recursive: true });
    await writeFile(join(folder, `events.out.tfevents.step-${step}`), encodeEventFile(lines.map(scalarPoint)));
    await appendFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
}

function scalarPoint({ step, gradient_step, time, ...metrics }: CurveLine): ScalarPoint {
  const values: Record<string, number> = { "train/policy_step": step };
  for (const [name, value] of Object.entries(metrics)) {
    values[name.includes("/") ? name : `train/${name}`] = value as number;
  }
  return { step: gradient_step, time: Date.parse(time) / 1000, values };
}

/** The last complete line; one torn by a crash is as good as none. */
function lastLine(file: string): CurveLine | null {
  if (!existsSync(file)) return null;
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(descriptor, tail, 0, tail.length, size - tail.length);
    for (const line of tail.toString("utf8").split("\n").reverse()) {
      const parsed = parseLine(line);
      if (parsed) return parsed;
    }
    return null;
  } finally {
    closeSync(descriptor);
  }
}

function parseLine(line: string): CurveLine | null {
  try {
    return JSON.parse(line) as CurveLine;
  } catch {
    return null;
  }
}
