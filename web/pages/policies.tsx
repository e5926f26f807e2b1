// The caller's policies: where each stands and how its reward moved.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { TrainableModel } from "../../src/client/types.ts";
import { NO_NOTES, useNotes } from "../notes/notes.ts";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { useWordFilter, WordFilter } from "../parts/word-filter.tsx";
import { listPolicies } from "../policies.ts";
import { mergePolicies } from "../policy/news.ts";
import { PolicyTable } from "../policy/policy-table.tsx";
import { Register } from "../policy/register.tsx";
import { matches } from "../policy/rows.ts";
import { useNews } from "../use-news.ts";

export function Policies() {
  useTitle("Policies");
  return (
    <NeedsScope scope="training" title="Policies">
      <AllPolicies />
    </NeedsScope>
  );
}

function AllPolicies() {
  const filter = useWordFilter();
  const { data, error, reload } = useQuery("policies", listPolicies);
  const notes = useNotes();
  const found = notes.data ?? NO_NOTES;
  const rows = useSignal<readonly TrainableModel[] | null>(null);
  useEffect(() => {
    if (data !== null) rows.value = data;
  }, [data]);
  useNews((news) => {
    const merged = mergePolicies(rows.value ?? [], news);
    if (rows.value !== null) rows.value = merged.rows;
    if (merged.isStale) reload();
  });
  const all = rows.value ?? [];
  const shown = all.filter((row) => matches(row, found.get(row.id), filter.value));
  return (
    <div class="serving">
      <div class="row">
        <h1>Policies{rows.value === null ? "" : ` (${all.length})`}</h1>
        <span class="spring" />
        <WordFilter filter={filter} placeholder="name, tag, note" />
      </div>
      <Register onMade={reload} />
      {error !== null && (
        <p class="problem" role="alert">
          {error}
        </p>
      )}
      {rows.value?.length === 0 && <Empty />}
      {all.length > 0 && shown.length === 0 && <p class="muted">No policy matches “{filter.value}”.</p>}
      {shown.length > 0 && <PolicyTable rows={shown} all={all} notes={found} />}
    </div>
  );
}

function Empty() {
  return (
    <div class="plain">
      <p>
        None yet. A policy is a model that learns: every <a href="/jobs">training job</a> adds a step to it. There are
        two ways to begin.
      </p>
      <ul>
        <li>
          <a href="/?panel=teach">Teach the model something</a> in the playground. Rate its answers, and it trains on
          them.
        </li>
        <li>
          Train from a file of rollouts: <code>flywheel train FILE.jsonl --model my-agent</code>
        </li>
      </ul>
    </div>
  );
}
