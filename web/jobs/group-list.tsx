// The groups of a job, one line each. Only the lines near the window exist.
import { useMemo } from "preact/hooks";
import { number } from "../format.ts";
import { type Filter, fits } from "./filter.ts";
import { barHeight, rangeOf } from "./histogram.ts";
import { type GroupRow, isAlike } from "./records.ts";
import { Stretch } from "./stretch.tsx";

/** Lines that come and go together: a quarter of a screen. */
const STRETCH = 6;

export interface GroupListProps {
  job: string;
  groups: readonly GroupRow[];
  filter: Filter;
  isSupervised: boolean;
}

export function GroupList({ job, groups, filter, isSupervised }: GroupListProps) {
  // The same stretches are not compared again when something else on the page changes.
  const stretches = useMemo(() => {
    const { low, high } = rangeOf(groups.flatMap(({ rewards }) => rewards));
    const height = (reward: number) => barHeight(reward, low, high);
    const line = (group: GroupRow, i: number) => (
      <GroupLine
        key={group.group}
        {...{ job, group, filter, height, isSupervised }}
        place={i + 1}
        total={groups.length}
      />
    );
    return Array.from({ length: Math.ceil(groups.length / STRETCH) }, (_, i) => {
      const rows = groups.slice(i * STRETCH, (i + 1) * STRETCH);
      return (
        <Stretch key={i} rows={rows.length} isFirst={i < 4}>
          {() => <ol class="group-list">{rows.map((group, k) => line(group, i * STRETCH + k))}</ol>}
        </Stretch>
      );
    });
  }, [job, groups, filter, isSupervised]);
  return (
    <>
      <p class="group-line group-head muted" aria-hidden="true">
        <span>{isSupervised ? "example" : "group"}</span>
        <span>task</span>
        <span>{isSupervised ? "" : "rewards"}</span>
        <span>{isSupervised ? "" : "mean ± spread"}</span>
        <span>verdicts</span>
      </p>
      {stretches}
    </>
  );
}

interface GroupLineProps extends Omit<GroupListProps, "groups"> {
  group: GroupRow;
  /** Where in the list it is, from 1, and how long the list is: a screen reader cannot count lines that are not there. */
  place: number;
  total: number;
  /** Of a reward's bar, between 0 and 1. */
  height: (reward: number) => number;
}

function GroupLine({ job, group, filter, height, isSupervised, place, total }: GroupLineProps) {
  const { group: index, task, mean, spread, verdicts, exceptions } = group;
  return (
    <li class="group-line" aria-posinset={place} aria-setsize={total}>
      <span class="num">
        {group.trajectories.length === 0 ? index : <a href={`/jobs/${job}/${index}/0`}>{index}</a>}
      </span>
      <span class="task" title={task ?? undefined}>
        {task ?? <span class="muted">no user turn</span>}
      </span>
      <span class="reward-bars" aria-hidden="true">
        {!isSupervised &&
          group.trajectories.map(({ trajectory, reward, status, tokens }) => (
            <a
              key={trajectory}
              href={`/jobs/${job}/${index}/${trajectory}`}
              // One stop of the Tab key for a group: the keys [ and ] lead on from its first try.
              tabIndex={-1}
              class={fits({ status, reward, tokens }, filter) ? undefined : "dim"}
              data-status={status ?? undefined}
              style={{ "--height": `${reward === null ? 0 : height(reward) * 100}%` }}
              title={`try ${trajectory + 1}: reward ${reward === null ? "–" : number(reward)}, ${status ?? "no verdict yet"}`}
            >
              {" "}
            </a>
          ))}
      </span>
      <span class="num">
        {mean !== null && spread !== null && (
          <>
            {number(mean, 2)} ± {number(spread, 2)}
          </>
        )}
      </span>
      <span class="row">
        <Verdicts verdicts={verdicts} />
        {exceptions.length > 0 && (
          <span
            class="chip bad"
            title={exceptions.map(({ type, message }) => `${type ?? "error"}: ${message}`).join("\n")}
          >
            {exceptions.length} failed
          </span>
        )}
        {isAlike(group) && <span class="chip warn">nothing to learn</span>}
      </span>
    </li>
  );
}

export function Verdicts({ verdicts }: { verdicts: Record<string, number> }) {
  const named = Object.entries(verdicts).sort(([, a], [, b]) => b - a);
  return (
    <>
      {named.map(([status, count]) => (
        <span key={status} class={`chip ${status === "trained" ? "good" : ""}`}>
          {number(count)} {status}
        </span>
      ))}
    </>
  );
}
