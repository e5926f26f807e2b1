// The rewards of a group as bars. They are one picture and one link, because a screen has hundreds of them: the link leads to
// the try under the pointer.
import { number } from "../format.ts";
import { type Filter, fits } from "./filter.ts";
import type { GroupRow } from "./records.ts";

export interface RewardBarsProps {
  job: string;
  group: GroupRow;
  /** Tries that do not fit are pale. */
  filter: Filter;
  /** Of a reward's bar, between 0 and 1. */
  height: (reward: number) => number;
}

export function RewardBars({ job, group: { group, trajectories }, filter, height }: RewardBarsProps) {
  const paths = new Map<string, string>();
  for (const [i, one] of trajectories.entries()) {
    const kind = `${one.status === "trained" ? "trained" : ""} ${fits(one, filter) ? "" : "dim"}`;
    const bar = `M${i} 1V${one.reward === null ? 1 : 1 - height(one.reward)}h.9V1z`;
    paths.set(kind, (paths.get(kind) ?? "") + bar);
  }
  const point = ({ currentTarget: link, clientX }: PointerEvent & { currentTarget: HTMLAnchorElement }) => {
    const { left, width } = link.getBoundingClientRect();
    const found = trajectories[Math.floor(((clientX - left) / width) * trajectories.length)];
    if (found === undefined) return;
    const { trajectory, reward, status } = found;
    link.href = `/jobs/${job}/${group}/${trajectory}`;
    link.title = `try ${trajectory + 1}: reward ${reward === null ? "–" : number(reward)}, ${status ?? "no verdict yet"}`;
  };
  return (
    <a
      class="reward-bars"
      href={`/jobs/${job}/${group}/0`}
      style={{ "--tries": trajectories.length }}
      // One stop of the Tab key for a group, its number: the keys [ and ] lead on from its first try.
      tabIndex={-1}
      onPointerMove={point}
      onPointerDown={point}
    >
      <svg viewBox={`0 0 ${trajectories.length} 1`} preserveAspectRatio="none" role="img" aria-label="rewards">
        {[...paths].map(([kind, path]) => (
          <path key={kind} class={kind} d={path} />
        ))}
      </svg>
    </a>
  );
}
