// The groups of a job, one line each.
import { useCallback, useMemo } from "preact/hooks";
import type { TrainingJob } from "../../src/client/types.ts";
import { count, number } from "../format.ts";
import { Marked } from "../parts/marked.tsx";
import { type Column, directionOf, SortButton, useSort } from "../parts/sort.tsx";
import { verdictWord } from "../policy/rows.ts";
import type { Filter } from "./filter.ts";
import { barHeight, rangeOf } from "./histogram.ts";
import { LongList } from "./long-list.tsx";
import { type GroupRow, isAlike } from "./records.ts";
import { RewardBars } from "./reward-bars.tsx";
import type { Said } from "./use-said.ts";

export interface GroupListProps {
  job: string;
  status: TrainingJob["status"];
  /** Rollouts in which the filter's text is said. */
  said: Said;
  groups: readonly GroupRow[];
  filter: Filter;
  isSupervised: boolean;
}

const COLUMNS: readonly Column<GroupRow>[] = [
  { title: "group", value: ({ group }) => group },
  { title: "task", value: ({ task }) => task },
  { title: "best reward", value: ({ rewards }) => (rewards.length === 0 ? null : rangeOf(rewards).high) },
  { title: "mean", value: ({ mean }) => mean },
  { title: "spread", value: ({ spread }) => spread },
  { title: "trained", value: ({ verdicts }) => verdicts.trained ?? 0 },
  { title: "failed", value: ({ exceptions }) => exceptions.length },
];
/** Examples have no rewards. */
const EXAMPLE_COLUMNS = new Set(["group", "task", "trained"]);

export function GroupList({ job, status, said, groups: given, filter, isSupervised }: GroupListProps) {
  const { sorted: groups, sorting } = useSort(given, COLUMNS);
  const columns = isSupervised ? COLUMNS.filter(({ title }) => EXAMPLE_COLUMNS.has(title)) : COLUMNS;
  const { low, high } = useMemo(() => rangeOf(groups.flatMap(({ rewards }) => rewards)), [groups]);
  const line = useCallback(
    (i: number) => (
      <GroupLine
        key={groups[i]!.group}
        {...{ job, status, said, filter, isSupervised, group: groups[i]!, index: i, total: groups.length }}
        height={(reward) => barHeight(reward, low, high)}
      />
    ),
    [job, status, said, groups, filter, isSupervised],
  );
  return (
    <>
      <p class="row group-head muted">
        <span>sort by</span>
        {columns.map(({ title }) => (
          <span key={title} class="sort-by" data-sort={directionOf(sorting.order, title)}>
            <SortButton title={title} order={sorting.order} onSort={sorting.onSort} />
          </span>
        ))}
      </p>
      <div style={{ "--chips": groups.reduce((most, group) => Math.max(most, chipsOf(group, said)), 1) }}>
        <LongList count={groups.length} row={line} />
      </div>
    </>
  );
}

/** How many chips a line has: all lines are as high as the one with the most needs. */
function chipsOf(group: GroupRow, said: Said): number {
  const more = [group.exceptions.length > 0, isAlike(group), said.has(group.group)];
  return Object.keys(group.verdicts).length + more.filter(Boolean).length;
}

interface GroupLineProps extends Omit<GroupListProps, "groups"> {
  group: GroupRow;
  /** Where in the list it is, and how long the list is: a screen reader cannot count lines that are not there. */
  index: number;
  total: number;
  height: (reward: number) => number;
}

function GroupLine({ job, status, said, group, filter, height, isSupervised, index, total }: GroupLineProps) {
  const { task, mean, spread, verdicts, exceptions } = group;
  const path = `/jobs/${job}/${group.group}`;
  const found = filter.text === "" ? undefined : said.get(group.group);
  const query = filter.text === "" ? "" : `?text=${encodeURIComponent(filter.text)}`;
  return (
    <li class="group-line long-row" style={{ "--row": index }} aria-posinset={index + 1} aria-setsize={total}>
      <span class="num">
        {group.trajectories.length === 0 ? group.group : <a href={path + query}>{group.group}</a>}
      </span>
      <span class="task" title={task ?? undefined}>
        {task === null ? <span class="muted">no user turn</span> : <Marked text={task} wanted={filter.text} />}
      </span>
      <span aria-hidden="true">{!isSupervised && <RewardBars {...{ job, group, filter, height, found }} />}</span>
      <span class="num">{mean !== null && spread !== null && `${number(mean, 2)} ± ${number(spread, 2)}`}</span>
      <span class="row">
        <Verdicts verdicts={verdicts} job={status} />
        {exceptions.length > 0 && (
          <span
            class="chip bad"
            title={exceptions.map(({ type, message }) => `${type ?? "error"}: ${message}`).join("\n")}
          >
            {exceptions.length} failed
          </span>
        )}
        {isAlike(group) && <span class="chip warn">nothing to learn</span>}
        {found !== undefined && (
          <a class="chip" href={`${path}/${found[0]}${query}`}>
            said in {count(found.length, "rollout")}
          </a>
        )}
      </span>
    </li>
  );
}

export function Verdicts({ verdicts, job }: { verdicts: Record<string, number>; job: TrainingJob["status"] }) {
  const named = Object.entries(verdicts).sort(([, a], [, b]) => b - a);
  return (
    <>
      {named.map(([status, count]) => (
        <span key={status} class={`chip ${status === "trained" && job === "COMPLETED" ? "good" : ""}`}>
          {number(count)} {verdictWord(status, job)}
        </span>
      ))}
    </>
  );
}
