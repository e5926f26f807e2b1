// The groups of a job, one line each.
import { useCallback, useMemo } from "preact/hooks";
import { number } from "../format.ts";
import type { Filter } from "./filter.ts";
import { barHeight, rangeOf } from "./histogram.ts";
import { LongList } from "./long-list.tsx";
import { type GroupRow, isAlike } from "./records.ts";
import { RewardBars } from "./reward-bars.tsx";

export interface GroupListProps {
  job: string;
  groups: readonly GroupRow[];
  filter: Filter;
  isSupervised: boolean;
}

export function GroupList({ job, groups, filter, isSupervised }: GroupListProps) {
  const { low, high } = useMemo(() => rangeOf(groups.flatMap(({ rewards }) => rewards)), [groups]);
  const line = useCallback(
    (i: number) => (
      <GroupLine
        key={groups[i]!.group}
        {...{ job, filter, isSupervised, group: groups[i]!, index: i, total: groups.length }}
        height={(reward) => barHeight(reward, low, high)}
      />
    ),
    [job, groups, filter, isSupervised],
  );
  return (
    <>
      <p class="group-line group-head muted" aria-hidden="true">
        <span>{isSupervised ? "example" : "group"}</span>
        <span>task</span>
        <span>{isSupervised ? "" : "rewards"}</span>
        <span>{isSupervised ? "" : "mean ± spread"}</span>
        <span>verdicts</span>
      </p>
      <div style={{ "--chips": Math.max(1, ...groups.map(chipsOf)) }}>
        <LongList count={groups.length} row={line} />
      </div>
    </>
  );
}

/** How many chips a line has: all lines are as high as the one with the most needs. */
function chipsOf(group: GroupRow): number {
  return Object.keys(group.verdicts).length + Number(group.exceptions.length > 0) + Number(isAlike(group));
}

interface GroupLineProps extends Omit<GroupListProps, "groups"> {
  group: GroupRow;
  /** Where in the list it is, and how long the list is: a screen reader cannot count lines that are not there. */
  index: number;
  total: number;
  height: (reward: number) => number;
}

function GroupLine({ job, group, filter, height, isSupervised, index, total }: GroupLineProps) {
  const { task, mean, spread, verdicts, exceptions } = group;
  return (
    <li class="group-line long-row" style={{ "--row": index }} aria-posinset={index + 1} aria-setsize={total}>
      <span class="num">
        {group.trajectories.length === 0 ? group.group : <a href={`/jobs/${job}/${group.group}/0`}>{group.group}</a>}
      </span>
      <span class="task" title={task ?? undefined}>
        {task ?? <span class="muted">no user turn</span>}
      </span>
      <span aria-hidden="true">{!isSupervised && <RewardBars {...{ job, group, filter, height }} />}</span>
      <span class="num">{mean !== null && spread !== null && `${number(mean, 2)} ± ${number(spread, 2)}`}</span>
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
