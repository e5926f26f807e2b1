// A group of a job: its task, and its rollouts side by side.
import { number } from "../format.ts";
import { isAlike, loadGroup } from "../jobs/records.ts";
import { SideBySide } from "../jobs/side-by-side.tsx";
import { useShortcuts } from "../keys.ts";
import { NeedsScope } from "../parts/needs-scope.tsx";
import { sortedBy } from "../parts/sort.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { useLocation, useRoute } from "../router.ts";

export function Group() {
  return (
    <NeedsScope scope="training" title="Group">
      <GroupOfJob />
    </NeedsScope>
  );
}

function GroupOfJob() {
  const { id, group } = useRoute().params as { id: string; group: string };
  const { query, route } = useLocation();
  const at = /^\d{1,9}$/.test(group) ? Number(group) : Number.NaN;
  useTitle(`Group ${group}`);
  const { data, error } = useQuery(`${id} ${group}`, async (signal) => {
    const found = Number.isNaN(at) ? null : await loadGroup(id, at, signal);
    if (found === null) throw new Error(`The job has no group ${group}.`);
    return found;
  });
  const go = (to: number, change: Record<string, string> = {}) => {
    const next = new URLSearchParams(Object.entries({ ...query, ...change }).filter(([, value]) => value !== ""));
    if (to >= 0) route(`/jobs/${id}/${to}${next.size === 0 ? "" : `?${next}`}`, true);
  };
  useShortcuts([
    { keys: "[", what: "previous group", run: () => go(at - 1) },
    { keys: "]", what: "next group", run: () => go(at + 1) },
  ]);
  const isDiff = query.diff !== "no";
  return (
    <div class="job">
      <div class="row">
        <a href={`/jobs/${id}`}>Job {id.slice(0, 8)}</a>
        <h1>Group {group}</h1>
        <button type="button" disabled={!(at > 0)} onClick={() => go(at - 1)} title="[">
          Previous
        </button>
        <button type="button" disabled={Number.isNaN(at)} onClick={() => go(at + 1)} title="]">
          Next
        </button>
      </div>
      {error !== null && <p role="alert">{error}</p>}
      {data === null && error === null && <p class="muted">…</p>}
      {data !== null && error === null && (
        <>
          <p class="task-line">{data.task ?? <span class="muted">no user turn</span>}</p>
          <p class="row muted num">
            {data.mean !== null && data.spread !== null && (
              <span>
                mean {number(data.mean)} ± {number(data.spread)}
              </span>
            )}
            {isAlike(data) && <span class="chip warn">nothing to learn: all rewards are the same</span>}
            {data.exceptions.map(({ type, message }, i) => (
              <span key={i} class="chip bad">
                {type ?? "error"}: {message}
              </span>
            ))}
          </p>
          <label>
            <input
              type="checkbox"
              checked={isDiff}
              onChange={({ currentTarget }) => go(at, { diff: currentTarget.checked ? "" : "no" })}
            />
            show how each differs from the best
          </label>
          {data.trajectories.length === 0 ? (
            <p>It has no rollouts.</p>
          ) : (
            <SideBySide
              key={`${id} ${data.group}`}
              job={id}
              group={data.group}
              rollouts={sortedBy(data.trajectories, ({ reward }) => reward, true)}
              isDiff={isDiff}
              wanted={query.text ?? ""}
            />
          )}
        </>
      )}
    </div>
  );
}
