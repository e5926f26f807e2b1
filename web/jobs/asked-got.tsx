// Asked and got: what the gradient wanted of every token of a rollout, and what the step did. Sampler and trainer compute the same
// numbers, so the difference is the step's and nothing else's.
import type { TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { number, percent } from "../format.ts";
import { TableScroll } from "../parts/table-scroll.tsx";
import { useQuery } from "../parts/use-query.ts";
import { score } from "../playground/scoring.ts";
import { getJson } from "../server.ts";
import { jobPath } from "../training-jobs.ts";
import { type AskedAndGot, askedAndGot } from "./asked.ts";
import { loadNumbers, type Sequence, type TokenNumbers } from "./records.ts";
import { SequenceTokens } from "./rollout-tokens.tsx";

const MOST_ROWS = 20;

export interface AskedGotProps {
  /** Of the job. */
  id: string;
  /** Of the rollout, below /v1. */
  path: string;
  sequences: readonly Sequence[];
}

interface Scored {
  sequence: Sequence;
  numbers: TokenNumbers["sequences"][number];
  result: AskedAndGot;
}

export function AskedGot({ id, path, sequences }: AskedGotProps) {
  const { data, error } = useQuery(path, (signal) => scoreBoth(id, path, sequences, signal));
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">scoring the tokens before and after the step…</p>;
  return (
    <>
      {data.scored.map(({ sequence, numbers, result }) => (
        <section key={numbers.sequence} aria-label="Asked and got">
          <p>
            From step {data.from} to step {data.to}, <b>{number(result.asAsked)}</b> of {number(result.asked)} tokens
            moved as the gradient asked: <b>{percent(result.share)}</b> of what it asked for.
          </p>
          <SequenceTokens
            sequence={sequence}
            numbers={withMoves(numbers, result)}
            colour="moved"
            name="Tokens, warm where they became likelier"
          />
          {result.against.length > 0 && <Against sequence={sequence} result={result} />}
        </section>
      ))}
    </>
  );
}

function Against({ sequence, result: { against } }: { sequence: Sequence; result: AskedAndGot }) {
  return (
    <TableScroll label="Tokens that moved the other way">
      <table>
        <caption>Moved the other way, the worst first</caption>
        <thead>
          <tr>
            <th>token</th>
            <th>place</th>
            <th>asked, −dL/dℓ</th>
            <th>ℓ before</th>
            <th>ℓ after</th>
            <th>got</th>
          </tr>
        </thead>
        <tbody>
          {against.slice(0, MOST_ROWS).map(({ at, asked, before, after, got }) => (
            <tr key={at}>
              <td class="mono">{JSON.stringify(sequence.token_strings[at] ?? sequence.tokens[at])}</td>
              <td class="num">{at + 1}</td>
              <td class="num">{number(asked)}</td>
              <td class="num">{number(before)}</td>
              <td class="num">{number(after)}</td>
              <td class="num">
                <data value={got}>{number(got)}</data>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {against.length > MOST_ROWS && <p class="muted">and {number(against.length - MOST_ROWS)} more</p>}
    </TableScroll>
  );
}

function withMoves(numbers: Scored["numbers"], { moved }: AskedAndGot): Scored["numbers"] {
  const column = (field: "before" | "after" | "got") => moved.map((one) => one[field]);
  const asked = moved.map((one) => one.asked);
  return { ...numbers, values: { asked, before: column("before"), after: column("after"), moved: column("got") } };
}

async function scoreBoth(
  id: string,
  path: string,
  sequences: readonly Sequence[],
  signal: AbortSignal,
): Promise<{ from: number; to: number; scored: Scored[] }> {
  const job = await getJson<TrainingJob>(jobPath(id), { signal });
  const { from_step: from, step: to } = job;
  if (from === null || to === null) throw new Error("The job made no step.");
  const numbers = await loadNumbers(path, signal);
  if (typeof numbers === "string") throw new Error(numbers);
  const { name } = await getJson<TrainableModel>(`/preview/models/${job.model_id}`, { signal });
  const scored: Scored[] = [];
  for (const one of numbers.sequences) {
    const sequence = sequences[one.sequence]!;
    const under = async (step: number) =>
      (await score(`${name}@${step}`, sequence.tokens, 0, 1, signal)).map(({ logprob }) => logprob);
    const result = askedAndGot(one, await under(from), await under(to));
    scored.push({ sequence, numbers: one, result });
  }
  return { from, to, scored };
}
