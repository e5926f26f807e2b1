// A rollout under a step of its policy. Under the step that sampled it, every log-probability comes out the same to the last bit:
// the proof of replay. Under another step, the colours show what has become likelier since.
import type { Checkpoint, TrainableModel } from "../../src/client/types.ts";
import { number } from "../format.ts";
import { useQuery } from "../parts/use-query.ts";
import { Compared } from "../playground/replay-button.tsx";
import { score } from "../playground/scoring.ts";
import { getJson } from "../server.ts";
import type { Trajectory } from "./records.ts";
import { SequenceTokens } from "./rollout-tokens.tsx";
import { comparedWith, type ScoredAgain } from "./scored-again.ts";

/** Newest steps to choose from. */
const MOST_STEPS = 100;

export interface UnderStepProps {
  data: Trajectory;
  /** Empty: none. */
  step: string;
  onStep: (step: string) => void;
}

export function UnderStep({ data, step, onStep }: UnderStepProps) {
  const sampledBy = data.initial_policy_version ?? data.from_step;
  const path = `/preview/models/${encodeURIComponent(data.model_id)}/checkpoints`;
  const steps = useQuery(path, (signal) =>
    getJson<{ data: Checkpoint[] }>(path, { query: { order: "desc", limit: MOST_STEPS }, signal }),
  );
  if (data.sequences.length === 0) return null;
  return (
    <>
      <div class="row">
        <button type="button" disabled={sampledBy === null} onClick={() => onStep(String(sampledBy))}>
          Replay
        </button>
        <label>
          Under step{" "}
          <select value={step} onChange={(event) => onStep(event.currentTarget.value)}>
            <option value="">none</option>
            {steps.data?.data.map((row) => (
              <option key={row.step} value={row.step}>
                {row.step}
                {row.step === sampledBy && ", which sampled it"}
              </option>
            ))}
          </select>
        </label>
      </div>
      {/^\d+$/.test(step) && <Scored data={data} step={step} isOwn={step === String(sampledBy)} />}
    </>
  );
}

function Scored({ data, step, isOwn }: { data: Trajectory; step: string; isOwn: boolean }) {
  const key = `${data.model_id} ${data.group} ${data.trajectory} ${step}`;
  const { data: results, error, isLoading } = useQuery(key, (signal) => scoreUnder(data, step, signal));
  if (error !== null) return <p class="problem">{error}</p>;
  if (results === null || isLoading) return <p class="muted">scoring again…</p>;
  return (
    <>
      {results.map((result, i) =>
        result === null ? (
          <p key={i}>Nothing in it has log-probabilities to compare with.</p>
        ) : (
          <section key={i} aria-label={`Sequence ${i + 1} under step ${step}`}>
            <p role="status">{isOwn ? <Compared result={result.compared} /> : <Change result={result} />}</p>
            {result.compared.firstDifference !== null && (
              <SequenceTokens
                sequence={data.sequences[i]!}
                numbers={result.numbers}
                colour="ratio"
                name={`Tokens of sequence ${i + 1} under step ${step}`}
              />
            )}
          </section>
        ),
      )}
    </>
  );
}

function Change({ result: { numbers } }: { result: ScoredAgain }) {
  const ratios = numbers.values.ratio as number[];
  const likelier = ratios.filter((ratio) => ratio > 1).length;
  const sum = ratios.reduce((total, ratio) => total + Math.log(ratio), 0);
  return (
    <>
      {likelier} of {ratios.length} tokens are likelier than when they were sampled. The reply's log-probability changed
      by <b>{number(sum)}</b>.
    </>
  );
}

/** One result for every sequence, null where nothing has a log-probability to compare with. */
async function scoreUnder(
  { model_id, sequences }: Trajectory,
  step: string,
  signal: AbortSignal,
): Promise<(ScoredAgain | null)[]> {
  const { name } = await getJson<TrainableModel>(`/preview/models/${encodeURIComponent(model_id)}`, { signal });
  const results = [];
  for (const [i, sequence] of sequences.entries()) {
    const again = await score(`${name}@${step}`, sequence.tokens, 0, 1, signal);
    results.push(comparedWith(sequence, again, i));
  }
  return results;
}
