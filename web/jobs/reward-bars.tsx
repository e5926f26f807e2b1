// The rewards of a group as bars. They are one picture and one link, because a screen has hundreds of them: the link leads to
// the rollout under the pointer.
import { number } from "../format.ts";
import { type Filter, fits } from "./filter.ts";
import type { GroupRow } from "./records.ts";

export interface RewardBarsProps {
  job: string;
  group: GroupRow;
  /** Rollouts that do not fit are pale. */
  filter: Filter;
  /** Those in which the filter's text is said; undefined: all, because nothing is looked for or the task has it. */
  found: readonly number[] | undefined;
  /** Of a reward's bar, between 0 and 1. */
  height: (reward: number) => number;
}

export function RewardBars({ job, group: { group, trajectories }, filter, found, height }: RewardBarsProps) {
  const paths = new Map<string, string>();
  for (const [i, one] of trajectories.entries()) {
    const kind = `${one.status === "trained" ? "trained" : ""} ${fits(one, filter) && found?.includes(i) !== false ? "" : "dim"}`;
    const bar = `M${i} 1V${one.reward === null ? 1 : 1 - height(one.reward)}h.9V1z`;
    paths.set(kind, (paths.get(kind) ?? "") + bar);
  }
  const point = ({ currentTarget: link, clientX }: PointerEvent & { currentTarget: HTMLAnchorElement }) => {
    const { left, width } = link.getBoundingClientRect();
    const pointed = trajectories[Math.floor(((clientX - left) / width) * trajectories.length)];
    if (pointed === undefined) return;
    const { trajectory, reward, status } = pointed;
    const query = filter.text === "" ? "" : `?text=${encodeURIComponent(filter.text)}`;
    link.href = `/jobs/${job}/${group}/${trajectory}${query}`;
    link.title = `rollout ${trajectory + 1}: reward ${reward === null ? "–" : number(reward)}, ${status ?? "no verdict yet"}`;
  };
  return (
    <a
      class="reward-bars"
      href={`/jobs/${job}/${group}/0`}
      style={{ "--rollouts": trajectories.length }}
      // One stop of the Tab key for a group, its number: its page leads on to its rollouts.
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
