// One policy: how it does, its curves, its steps and its jobs.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Checkpoint, TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { JobTable } from "../jobs/job-table.tsx";
import { NoteLine } from "../notes/note-line.tsx";
import { NO_NOTES, useNotes } from "../notes/notes.ts";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { hasGradientStep, mergeJobs } from "../policy/news.ts";
import { PolicyHeader } from "../policy/policy-header.tsx";
import { Progress } from "../policy/progress.tsx";
import { Steps } from "../policy/steps.tsx";
import { useRoute } from "../router.ts";
import { getJson } from "../server.ts";
import { useNews } from "../use-news.ts";

export function Policy() {
  const { id } = useRoute().params as { id: string };
  // Another policy is another page: nothing of the one before stays.
  return (
    <NeedsScope scope="training" title="Policy">
      <PolicyPage key={id} id={id} />
    </NeedsScope>
  );
}

function PolicyPage({ id }: { id: string }) {
  const path = `/preview/models/${encodeURIComponent(id)}`;
  const policy = useQuery(path, (signal) => getJson<TrainableModel>(path, { signal }));
  const steps = useQuery(`${path} steps`, (signal) =>
    getJson<{ data: Checkpoint[]; has_more: boolean }>(`${path}/checkpoints`, {
      query: { order: "desc", limit: 100 },
      signal,
    }),
  );
  const listed = useQuery(`${path} jobs`, (signal) =>
    getJson<{ data: TrainingJob[] }>("/preview/training-jobs", { query: { model_id: id, limit: 50 }, signal }),
  );
  const notes = useNotes();
  const found = notes.data ?? NO_NOTES;
  const jobs = useSignal<readonly TrainingJob[]>([]);
  useEffect(() => {
    if (listed.data !== null) jobs.value = listed.data.data;
  }, [listed.data]);
  const turn = useSignal(0);
  const gradientTurn = useSignal(0);
  const reload = () => {
    policy.reload();
    steps.reload();
    listed.reload();
    turn.value += 1;
    gradientTurn.value += 1;
  };
  useNews((news) => {
    const merged = mergeJobs(jobs.value, id, news);
    jobs.value = merged.rows;
    if (merged.isStale) reload();
    else if (hasGradientStep(jobs.value, news)) gradientTurn.value += 1;
  });
  useTitle(policy.data?.name ?? "Policy");
  const problem = policy.error ?? steps.error ?? listed.error ?? notes.error;
  return (
    <div class="serving">
      {policy.data === null && <h1>Policy</h1>}
      {problem !== null && (
        <p class="problem" role="alert">
          {problem} <a href="/policies">All policies</a>
        </p>
      )}
      {policy.data === null && problem === null && <p class="muted">Loading…</p>}
      {policy.data !== null && (
        <>
          <PolicyHeader policy={policy.data} />
          <NoteLine note={found.get(id)} path={path} onSaved={notes.reload} />
          <Progress
            policy={policy.data}
            turn={String(turn.value)}
            gradientTurn={String(gradientTurn.value)}
            jobs={jobs.value}
          />
          <Steps
            policy={policy.data}
            rows={steps.data?.data ?? []}
            hasMore={steps.data?.has_more === true}
            onChange={reload}
          />
          <JobTable
            rows={jobs.value}
            notes={found}
            policies={null}
            chosen={null}
            onChoose={() => {}}
            onChange={reload}
          />
        </>
      )}
    </div>
  );
}
