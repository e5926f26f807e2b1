// A training job: how far it is, what it was given, and what became of every group.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { TrainingJob } from "../../src/client/types.ts";
import { noteQuery } from "../address.ts";
import { count, number } from "../format.ts";
import { Charts } from "../jobs/charts.tsx";
import { type Filter, filterFrom, filterGroups, queryOf } from "../jobs/filter.ts";
import { FilterBar } from "../jobs/filter-bar.tsx";
import { GroupList } from "../jobs/group-list.tsx";
import { JobCurves } from "../jobs/job-curves.tsx";
import { JobDetails } from "../jobs/job-details.tsx";
import { JobHead } from "../jobs/job-head.tsx";
import { GROUPS_PER_PAGE, type Groups } from "../jobs/records.ts";
import { RepeatButton } from "../jobs/repeat-button.tsx";
import { useJob } from "../jobs/use-job.ts";
import { useSaid } from "../jobs/use-said.ts";
import { NoteLine } from "../notes/note-line.tsx";
import { useNotes } from "../notes/notes.ts";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { useTitle } from "../parts/use-title.ts";
import { useLocation, useRoute } from "../router.ts";
import { may } from "../server-facts.ts";
import { jobPath } from "../training-jobs.ts";

export function Job() {
  const id = useRoute().params.id!;
  return (
    <NeedsScope scope="training" title="Job">
      <JobOf key={id} id={id} />
    </NeedsScope>
  );
}

function JobOf({ id }: { id: string }) {
  useTitle(`Job ${id.slice(0, 8)}`);
  const [pages, setPages] = useState(1);
  const { job, groups, gradientSteps, warnings } = useJob(id, pages);
  const notes = useNotes();
  if (job.data === null) {
    return (
      <section>
        <h1>Job</h1>
        {job.error === null ? <p class="muted">…</p> : <p role="alert">{job.error}</p>}
        <a href="/jobs">All jobs</a>
      </section>
    );
  }
  return (
    <div class="job">
      <JobHead job={job.data} gradientSteps={gradientSteps} onChanged={job.reload} />
      <NoteLine note={notes.data?.get(id)} path={jobPath(id)} onSaved={notes.reload} />
      <JobCurves events={gradientSteps} />
      <JobDetails job={job.data} warnings={warnings} />
      {job.data.status === "COMPLETED" && may("training") && <RepeatButton job={job.data} />}
      <div role="alert" class="problem">
        {job.error ?? groups.error}
      </div>
      {groups.data !== null && (
        <GroupPart
          job={id}
          status={job.data.status}
          groups={groups.data}
          isSupervised={job.data.kind === "sft"}
          fromStep={job.data.from_step}
          onMore={() => setPages(pages + 1)}
        />
      )}
    </div>
  );
}

interface GroupPartProps {
  job: string;
  status: TrainingJob["status"];
  groups: Groups;
  isSupervised: boolean;
  fromStep: number | null;
  onMore: () => void;
}

function GroupPart({
  job,
  status,
  groups: { rows, hasMore, missing },
  isSupervised,
  fromStep,
  onMore,
}: GroupPartProps) {
  const [filter, setFilter] = useFilter();
  const { said, note } = useSaid(job, filter.text, rows.at(-1)?.group ?? -1);
  const shown = useMemo(() => filterGroups(rows, filter, said), [rows, filter, said]);
  const verdicts = useMemo(() => [...new Set(rows.flatMap((row) => Object.keys(row.verdicts)))], [rows]);
  const charts = useMemo(() => <Charts groups={rows} fromStep={fromStep} />, [rows, fromStep]);
  if (missing !== null) return <p>{missing}</p>;
  const noun = isSupervised ? "example" : "group";
  return (
    <section aria-label="Groups">
      {charts}
      <FilterBar filter={filter} verdicts={verdicts} onChange={setFilter} />
      <p class="muted" role="status">
        {shown.length === rows.length
          ? count(rows.length, noun)
          : `${number(shown.length)} of ${count(rows.length, noun)}`}
        {hasMore && ". The job has more."}
        {note !== "" && ` · ${note}`}
      </p>
      <GroupList {...{ job, status, said, filter, isSupervised }} groups={shown} />
      {hasMore && (
        <button type="button" onClick={onMore}>
          Load {number(GROUPS_PER_PAGE)} more
        </button>
      )}
    </section>
  );
}

/** The filter of the address. A change makes no entry in the history. */
function useFilter(): [Filter, (change: Partial<Filter>) => void] {
  const { url } = useLocation();
  const [filter, setFilter] = useState(() => filterFrom(location.search));
  useEffect(() => setFilter(filterFrom(location.search)), [url]);
  const change = (part: Partial<Filter>) => {
    // Two changes may come before the page is drawn again; the address has the first already.
    const next = { ...filterFrom(location.search), ...part };
    noteQuery(queryOf(next, location.search));
    setFilter(next);
  };
  return [filter, change];
}
