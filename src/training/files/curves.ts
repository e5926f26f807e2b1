// Writes training curves for tools that tail or plot files: metrics.jsonl with one line per gradient step, and one
// TensorBoard event file per policy step. Both are made from the recorded events, so a curve that a crash cut off is
// completed by the next write, and nothing is written twice.
import { closeSync, fstatSync, ftruncateSync, mkdirSync, openSync, readSync } from "node:fs";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KeyedSerialWork } from "../../pacing/work.ts";
import type { TrainingContext } from "../context.ts";
import { encodeEventFile, type ScalarPoint } from "./tensorboard.ts";

// Finds the end of a model's metrics.jsonl, which has one line per gradient step and only grows. An incomplete last
// line, left by a crash, is cut off, so that the next line starts where it should.

interface CurveLine {
  /** The policy step that this gradient step belongs to. */
  step: number;
  /** Gradient steps since the model was created. */
  gradient_step: number;
  time: string;
  [metric: string]: number | string;
}

export interface CurveEnd {
  /** Policy step of the last line. */
  step: number;
  gradientStep: number;
  /** Lines of that policy step. */
  lines: number;
}

const EMPTY: CurveEnd = { step: 0, gradientStep: 0, lines: 0 };
const NEWLINE = 0x0a;

/** Long enough for the lines of most steps. */
const TAIL_BYTES = 1 << 16;

function cutCurve(file: string): CurveEnd {
  const descriptor = openIfThere(file);
  if (descriptor === null) return EMPTY;
  try {
    const { size } = fstatSync(descriptor);
    for (let length = TAIL_BYTES; ; length *= 2) {
      const tail = Buffer.alloc(Math.min(size, length));
      const from = size - tail.length;
      readSync(descriptor, tail, 0, tail.length, from);
      const found = endOf(tail, from === 0);
      if (!found) continue;
      if (from + found.bytes < size) ftruncateSync(descriptor, from + found.bytes);
      return found.end;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** null = there is no such file. One that cannot be opened is not taken for that: its lines would be written twice. */
function openIfThere(file: string): number | null {
  try {
    return openSync(file, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** The last complete line, and the number of lines of its step. null when the tail is too short to tell. */
function endOf(tail: Buffer, whole: boolean): { end: CurveEnd; bytes: number } | null {
  let end: CurveEnd | null = null;
  let bytes = 0;
  let stop = tail.lastIndexOf(NEWLINE) + 1;
  while (stop > 0) {
    const start = stop === 1 ? 0 : tail.lastIndexOf(NEWLINE, stop - 2) + 1;
    if (start === 0 && !whole) return null;
    const line = parseLine(tail.toString("utf8", start, stop));
    if (end && line?.step !== end.step) break;
    if (end) end.lines++;
    else if (line) {
      end = { step: line.step, gradientStep: line.gradient_step, lines: 1 };
      bytes = stop;
    }
    stop = start;
  }
  if (!end && !whole) return null;
  return { end: end ?? EMPTY, bytes };
}

function parseLine(text: string): CurveLine | null {
  try {
    const line = JSON.parse(text) as Partial<CurveLine> | null;
    return Number.isInteger(line?.step) && Number.isInteger(line?.gradient_step) ? (line as CurveLine) : null;
  } catch {
    return null; // cut off by a crash
  }
}

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
