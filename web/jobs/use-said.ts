// The rollouts of a job in which a text is said. The server searches them, some groups at a time.
import { useQuery } from "../parts/use-query.ts";
import { getJson } from "../server.ts";
import { jobPath } from "../training-jobs.ts";

/** Rollouts by group. */
export type Said = ReadonlyMap<number, readonly number[]>;

/** How long nothing is typed before the search begins. */
const PAUSE_MS = 300;
const GROUPS_AT_ONCE = 200;
const NONE: Said = new Map();

interface Matches {
  data: { group: number; trajectories: number[] }[];
  searched_to: number | null;
}

/** Searches up to group `last`. `note`: what there is to say of the search. */
export function useSaid(job: string, text: string, last: number): { said: Said; note: string } {
  const { data, error } = useQuery(`${job} ${last} ${text}`, (signal) => search(job, text, last, signal));
  if (data?.text === text) return { said: data.said, note: "" };
  return { said: NONE, note: error ?? "searching …" };
}

async function search(job: string, text: string, last: number, signal: AbortSignal) {
  const said = new Map<number, readonly number[]>();
  if (text === "") return { text, said };
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  let after: number | null | undefined;
  do {
    const query = { text, after, limit: GROUPS_AT_ONCE };
    const answer: Matches = await getJson(`${jobPath(job)}/matches`, { query, signal });
    for (const { group, trajectories } of answer.data) said.set(group, trajectories);
    after = answer.searched_to;
  } while (after !== null && after < last);
  return { text, said };
}
