// The curves of a model as columns: one row per gradient step of its jobs, or one per step. And those of one job.

import type { CurveOf } from "../store/tables/events.ts";
import type { ModelRecord } from "../store/tables/models.ts";
import type { TrainingContext } from "./context.ts";

export interface CurveQuery {
  x: "step" | "gradient_step";
  /** Names of metrics; null = all. */
  keys: readonly string[] | null;
  /** `next` of the rows before. */
  after: number;
}

export interface Curves {
  rows: number;
  /** null where a row lacks the metric. */
  columns: Record<string, (number | null)[]>;
  /** Of the last row; `after` itself if there is none. */
  next: number;
  hasMore: boolean;
  /** Names of all metrics that the rows have. */
  allKeys: string[];
}

/** A row, with what continues after it. */
interface Row {
  next: number;
  /** Place on the axes. */
  places: Record<string, number>;
  metrics: Record<string, number>;
}

/** Rows of one reply, and of one statement. Reading them gives way to others in between. */
const MOST_ROWS = 5_000;
const PAGE = 250;

export async function readCurves(
  context: Pick<TrainingContext, "modelTable" | "curveTable">,
  model: ModelRecord,
  { x, keys, after }: CurveQuery,
): Promise<Curves> {
  if (x === "step") return columnsOf(await stepRows(context, model, after), ["step"], keys, after);
  const rows = await gradientStepRows(context, { modelId: model.id }, after);
  return columnsOf(rows, ["gradient_step", "step"], keys, after);
}

/** One row per gradient step of a job, also of one that failed. */
export async function readJobCurves(
  context: Pick<TrainingContext, "curveTable">,
  jobId: string,
  { keys, after }: Omit<CurveQuery, "x">,
): Promise<Curves> {
  return columnsOf(await gradientStepRows(context, { jobId }, after), ["gradient_step"], keys, after);
}

function columnsOf(rows: readonly Row[], places: readonly string[], keys: CurveQuery["keys"], after: number): Curves {
  const shown = rows.slice(0, MOST_ROWS);
  const allKeys = [...new Set(shown.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  const columns = Object.fromEntries([
    ...(keys ?? allKeys).map((key) => [key, shown.map(({ metrics }) => metrics[key] ?? null)]),
    // last, so that no metric takes their names
    ...places.map((place) => [place, shown.map((row) => row.places[place]!)]),
  ]);
  const hasMore = rows.length > MOST_ROWS;
  return { rows: shown.length, columns, next: shown.at(-1)?.next ?? after, hasMore, allKeys };
}

async function stepRows({ modelTable }: Pick<TrainingContext, "modelTable">, { id }: ModelRecord, after: number) {
  const steps = await modelTable.stepsAfter(id, after);
  return steps.map(({ step, metrics }): Row => ({ next: step, places: { step }, metrics }));
}

async function gradientStepRows({ curveTable }: Pick<TrainingContext, "curveTable">, of: CurveOf, after: number) {
  let number = await curveTable.countUpTo(of, after);
  const rows: Row[] = [];
  while (rows.length <= MOST_ROWS) {
    const points = await curveTable.points(of, rows.at(-1)?.next ?? after, PAGE);
    for (const { seq, step, metrics } of points) {
      // the trainer counts from the start of the job
      const { gradient_step: _, ...measured } = metrics;
      rows.push({ next: seq, places: { gradient_step: ++number, step }, metrics: measured });
    }
    if (points.length < PAGE) break;
  }
  return rows;
}
