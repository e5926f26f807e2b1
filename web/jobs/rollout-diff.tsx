// What another rollout of the group has that this one has not, and the other way round.
import { useMemo } from "preact/hooks";
import { useQuery } from "../parts/use-query.ts";
import { getJson } from "../server.ts";
import type { Sequence, Trajectory } from "./records.ts";
import { type DiffRow, tokenDiff } from "./token-diff.ts";

export function RolloutDiff({ path, sequences }: { path: string; sequences: readonly Sequence[] }) {
  const { data, error } = useQuery(path, (signal) => getJson<Trajectory>(path, { signal }));
  const rows = useMemo(() => data && tokenDiff(data.sequences, sequences), [data, sequences]);
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">…</p>;
  return (
    <p class="rollout-tokens tokens">
      <Diff rows={rows} />
    </p>
  );
}

/** What only this one has is underlined, what only the other has is struck out. */
export function Diff({ rows }: { rows: readonly DiffRow[] | null }) {
  if (rows === null) return <>The rollouts differ in too many places to compare them.</>;
  return (
    <>
      {rows.map(({ kind, text }, i) =>
        kind === "both" ? text : kind === "mine" ? <ins key={i}>{text}</ins> : <del key={i}>{text}</del>,
      )}
    </>
  );
}
