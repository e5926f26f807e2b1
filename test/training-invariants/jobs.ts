// What must hold for the events of jobs (I4 of violations.ts).

import type { Store } from "../../src/store/store.ts";

export interface JobFacts {
  id: string;
  model: string;
  status: string;
  kind: string;
  /** The step that it made. */
  toStep: number | null;
}

const ENDS = new Set(["training_ended", "training_failed", "operation_ended"]);

/** In the order in which they were accepted. */
export function readJobs(store: Store): Promise<JobFacts[]> {
  return store.all(`SELECT id, model_id AS model, status, kind, to_step AS "toStep" FROM jobs ORDER BY seq`);
}

/** One start, at most the gradient steps that it announces, one end that fits the status. */
export async function wrongEvents(store: Store, jobs: readonly JobFacts[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const { id, status, kind } of jobs) {
    const rows = await store.all<{ type: string; data: string }>(
      "SELECT type, data FROM job_events WHERE job_id = ?1 ORDER BY seq",
      id,
    );
    const types = rows.map(({ type }) => type);
    const say = (what: string) => wrong.push(`job ${id} (${status}) has the events ${types.join(", ")}: ${what}`);
    const count = (type: string) => types.filter((one) => one === type).length;
    const ends = types.filter((type) => ENDS.has(type));
    const last = types.at(-1) ?? "";
    if (ends.length !== 1) say("not one end");
    else if (!ENDS.has(last)) say("the end is not last");
    else if (last !== "operation_ended" && (last === "training_ended") !== (status === "COMPLETED")) say("another end");
    const starts = count("training_started");
    if (starts > 1) say("more than one start");
    if (starts === 1 && types[0] !== "training_started") say("the start is not first");
    if (kind !== "rl" && kind !== "sft") continue;
    // one that never started announces none
    const first = JSON.parse(rows[0]?.data ?? "{}") as { num_sequences?: number };
    const planned = first.num_sequences ?? 0;
    const steps = count("gradient_step");
    if (status === "COMPLETED" ? steps !== planned : steps > planned) say(`not the ${planned} steps of its start`);
  }
  return wrong;
}
