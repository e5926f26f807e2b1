// All training jobs, the newest first, and the curves of those that are chosen in the same charts.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { TrainingJob } from "../../src/client/types.ts";
import { JobTable } from "../jobs/job-table.tsx";
import { NO_NOTES, useNotes } from "../notes/notes.ts";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { hasWords, useWordFilter, WordFilter } from "../parts/word-filter.tsx";
import { listPolicies } from "../policies.ts";
import { CurveBar } from "../policy/curve-bar.tsx";
import { metricsOf } from "../policy/curve-charts.ts";
import { type CurveSettings, MOST_OTHERS } from "../policy/curve-settings.ts";
import { Curves } from "../policy/curves.tsx";
import { hasGradientStep, mergeJobs } from "../policy/news.ts";
import { textsOf } from "../policy/rows.ts";
import { useCurveSettings } from "../policy/use-curve-settings.ts";
import { useCurves } from "../policy/use-curves.ts";
import { getJson } from "../server.ts";
import { jobPath } from "../training-jobs.ts";
import { useNews } from "../use-news.ts";

const AT_ONCE = 100;
/** As many as have colours of their own. */
const MOST_CHOSEN = MOST_OTHERS + 1;

export function Jobs() {
  useTitle("Jobs");
  return (
    <NeedsScope scope="training" title="Jobs">
      <AllJobs />
    </NeedsScope>
  );
}

function AllJobs() {
  const [pages, setPages] = useState(1);
  const listed = useQuery(`jobs ${pages}`, (signal) => listJobs(pages, signal));
  const policies = useQuery("policies", listPolicies);
  const notes = useNotes();
  const rows = useSignal<readonly TrainingJob[] | null>(null);
  const turn = useSignal(0);
  const [{ value: settings }, change] = useCurveSettings();
  const filter = useWordFilter();
  useEffect(() => {
    if (listed.data !== null) rows.value = listed.data.rows;
  }, [listed.data]);
  useNews((news) => {
    const merged = mergeJobs(rows.value ?? [], null, news);
    if (rows.value !== null) rows.value = merged.rows;
    if (merged.isStale) listed.reload();
    if (
      merged.isStale ||
      hasGradientStep(
        settings.others.map((id) => ({ id })),
        news,
      )
    )
      turn.value += 1;
  });
  const names = useMemo(() => new Map((policies.data ?? []).map(({ id, name }) => [id, name])), [policies.data]);
  const found = notes.data ?? NO_NOTES;
  const all = rows.value ?? [];
  const shown = all.filter(({ id, status, model_id, kind }) => {
    const note = found.get(id);
    return hasWords([id, status, kind, names.get(model_id) ?? "", ...textsOf(note)], filter.value);
  });
  const choose = (id: string, isChosen: boolean) => {
    const others = isChosen
      ? [...settings.others, id].slice(-MOST_CHOSEN)
      : settings.others.filter((one) => one !== id);
    change({ others });
  };
  const problem = listed.error ?? policies.error ?? notes.error;
  return (
    <div class="serving">
      <div class="row">
        <h1>Jobs{rows.value === null ? "" : ` (${all.length}${listed.data?.hasMore ? "+" : ""})`}</h1>
        <span class="spring" />
        <WordFilter filter={filter} placeholder="policy, state, tag, note" />
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {rows.value === null && problem === null && <p class="muted">Loading…</p>}
      {rows.value?.length === 0 && (
        <p>
          None yet. A training job makes the next step of a <a href="/policies">policy</a> from scored rollouts.
        </p>
      )}
      {settings.others.length > 0 && (
        <JobCurves rows={all} turn={String(turn.value)} settings={settings} onChange={change} />
      )}
      {all.length > 0 && (
        <>
          {settings.others.length === 0 && (
            <p class="muted">Tick jobs to draw their curves into the same charts, up to {MOST_CHOSEN}.</p>
          )}
          <JobTable
            rows={shown}
            notes={found}
            policies={names}
            chosen={settings.others}
            onChoose={choose}
            onChange={listed.reload}
          />
        </>
      )}
      {listed.data?.hasMore && (
        <p>
          <button type="button" onClick={() => setPages(pages + 1)}>
            Load {AT_ONCE} more
          </button>
        </p>
      )}
    </div>
  );
}

interface JobCurvesProps {
  rows: readonly TrainingJob[];
  /** Changes when one of them made a gradient step. */
  turn: string;
  settings: CurveSettings;
  onChange: (part: Partial<CurveSettings>) => void;
}

function JobCurves({ rows, turn, settings: { x: _, ...given }, onChange }: JobCurvesProps) {
  const settings: CurveSettings = { ...given, x: "gradient_step" };
  const chosen = settings.others;
  // what a job that is over has measured does not change
  const turnOf = (id: string) => {
    const status = rows.find((row) => row.id === id)?.status ?? "";
    return status === "RUNNING" ? turn : status;
  };
  const { columns, error } = useCurves(
    chosen.map((id) => ({ path: jobPath(id), turn: turnOf(id) })),
    "gradient_step",
  );
  const sources = useMemo(
    () => (columns ?? []).map((one, i) => ({ name: chosen[i]!.slice(0, 8), columns: one })),
    [columns],
  );
  return (
    <section aria-label="Curves" class="serving">
      <h2 class="sr-only">Curves</h2>
      <CurveBar settings={settings} metrics={metricsOf(columns ?? [])} hasSteps={false} onChange={onChange} />
      {error !== null && (
        <p class="problem" role="alert">
          {error}
        </p>
      )}
      {columns === null ? (
        error === null && <p class="muted">Loading…</p>
      ) : (
        <Curves sources={sources} settings={settings} />
      )}
    </section>
  );
}

async function listJobs(pages: number, signal: AbortSignal): Promise<{ rows: TrainingJob[]; hasMore: boolean }> {
  const rows: TrainingJob[] = [];
  let hasMore = true;
  while (hasMore && rows.length < pages * AT_ONCE) {
    const query = { limit: AT_ONCE, after: rows.at(-1)?.id };
    const page = await getJson<{ data: TrainingJob[]; has_more: boolean }>("/preview/training-jobs", { query, signal });
    rows.push(...page.data);
    hasMore = page.has_more;
  }
  return { rows, hasMore };
}
