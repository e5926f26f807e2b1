// The groups of a job, one line each. The browser lays out only the lines in sight, so a thousand of them scroll well.
import { useMemo } from "preact/hooks";
import { number } from "../format.ts";
import { type Filter, fits } from "./filter.ts";
import { barHeight, rangeOf } from "./histogram.ts";
import { type GroupRow, isAlike } from "./records.ts";

export interface GroupListProps {
  job: string;
  groups: readonly GroupRow[];
  filter: Filter;
  isSupervised: boolean;
}

export function GroupList({ job, groups, filter, isSupervised }: GroupListProps) {
  // The same lines are not compared again when something else on the page changes.
  const lines = useMemo(() => {
    const { low, high } = rangeOf(groups.flatMap(({ rewards }) => rewards));
    return groups.map((group) => (
      <GroupLine
        key={group.group}
        job={job}
        group={group}
        filter={filter}
        height={(reward) => barHeight(reward, low, high)}
        isSupervised={isSupervised}
      />
    ));
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
      <ol class="group-list">{lines}</ol>
    </>
  );
}

interface GroupLineProps extends Omit<GroupListProps, "groups"> {
  group: GroupRow;
  /** Of a reward's bar, between 0 and 1. */
  height: (reward: number) => number;
}

function GroupLine({ job, group, filter, height, isSupervised }: GroupLineProps) {
  const { group: index, task, mean, spread, verdicts, exceptions } = group;
  return (
    <li class="group-line">
      <span class="num">
        {group.trajectories.length === 0 ? index : <a href={`/jobs/${job}/${index}/0`}>{index}</a>}
      </span>
      <span class="task" title={task ?? undefined}>
        {task ?? <span class="muted">no user turn</span>}
      </span>
      <span class="reward-bars" aria-hidden="true">
        {!isSupervised &&
          group.trajectories.map(({ trajectory, reward, status }) => (
            <a
              key={trajectory}
              href={`/jobs/${job}/${index}/${trajectory}`}
              // One stop of the Tab key for a group: the keys [ and ] lead on from its first try.
              tabIndex={-1}
              class={fits({ status, reward }, filter) ? undefined : "dim"}
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
