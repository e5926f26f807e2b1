// The rollouts of a group beside each other, the best first, each with what it has that the best has not.
import { useMemo } from "preact/hooks";
import type { TrainingJob } from "../../src/client/types.ts";
import { number } from "../format.ts";
import { Marked } from "../parts/marked.tsx";
import { useNear } from "../parts/use-near.ts";
import { useQuery } from "../parts/use-query.ts";
import { verdictWord } from "../policy/rows.ts";
import { getJson } from "../server.ts";
import { type RolloutRow, rolloutPath, type Trajectory } from "./records.ts";
import { Diff } from "./rollout-diff.tsx";
import { wordDiff } from "./token-diff.ts";
import { saidBy, turnsOf } from "./turns.ts";

export interface SideBySideProps {
  job: string;
  group: number;
  /** The best first. */
  rollouts: readonly RolloutRow[];
  /** Whether each is compared with the best. */
  isDiff: boolean;
  wanted: string;
}

export function SideBySide({ job, group, rollouts, isDiff, wanted }: SideBySideProps) {
  const best = rollouts[0]!;
  const path = rolloutPath(job, group, best.trajectory);
  const { data, error } = useQuery(path, (signal) => getJson<Trajectory>(path, { signal }));
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">…</p>;
  const said = saidBy(turnsOf(data.messages_and_choices));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus
    <section class="side-by-side" aria-label="Rollouts, the best first" tabIndex={0}>
      {rollouts.map((row, i) => (
        <Rollout
          key={row.trajectory}
          {...{ job, group, row, wanted }}
          status={data.job_status}
          best={i === 0 || !isDiff ? null : said}
          isBest={i === 0}
        />
      ))}
    </section>
  );
}

interface RolloutProps {
  job: string;
  group: number;
  row: RolloutRow;
  status: TrainingJob["status"];
  /** What the best one said, to be compared with; null: it is shown as it is. */
  best: string | null;
  isBest: boolean;
  wanted: string;
}

function Rollout({ job, group, row, status, best, isBest, wanted }: RolloutProps) {
  const { place, isNear } = useNear();
  const { trajectory, reward, advantage, status: verdict, tokens } = row;
  const facts = [
    reward === null ? null : `reward ${number(reward)}`,
    advantage === null || advantage === 0 ? null : `advantage ${number(advantage)}`,
    tokens === null || tokens === 0 ? null : `${number(tokens)} tokens`,
  ].filter((fact) => fact !== null);
  const query = wanted === "" ? "" : `?text=${encodeURIComponent(wanted)}`;
  return (
    <article class="rollout" aria-label={`Rollout ${trajectory + 1}`}>
      <h2>
        <a href={`/jobs/${encodeURIComponent(job)}/${group}/${trajectory}${query}`}>Rollout {trajectory + 1}</a>{" "}
        {isBest && <span class="chip good">best</span>}
        {verdict !== null && verdict !== "trained" && <span class="chip warn">{verdictWord(verdict, status)}</span>}
      </h2>
      <p class="num muted">{facts.join(" · ")}</p>
      <div ref={place} class="said">
        {isNear && <Said path={rolloutPath(job, group, trajectory)} best={best} wanted={wanted} />}
      </div>
    </article>
  );
}

function Said({ path, best, wanted }: { path: string; best: string | null; wanted: string }) {
  const { data, error } = useQuery(path, (signal) => getJson<Trajectory>(path, { signal }));
  const said = useMemo(() => (data === null ? "" : saidBy(turnsOf(data.messages_and_choices))), [data]);
  const rows = useMemo(() => (best === null || data === null ? null : wordDiff(best, said)), [best, said]);
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">…</p>;
  if (said === "") return <p class="muted">The policy said nothing in it.</p>;
  if (best === null) return <Marked text={said} wanted={wanted} />;
  return said === best ? <p class="muted">the same as the best</p> : <Diff rows={rows} />;
}
