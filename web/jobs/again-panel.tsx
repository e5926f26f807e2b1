// The data of a job once more: as a dry run, or with other settings.
import { useSignal } from "@preact/signals";
import type { TrainingJob } from "../../src/client/types.ts";
import { count, number } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { useLocation } from "../router.ts";
import { postJson } from "../server.ts";
import { may } from "../server-facts.ts";
import { messageOf } from "../session.ts";
import { type Comparison, compareOutcomes, type Outcomes } from "./again.ts";
import { Verdicts } from "./group-list.tsx";

/** Changed verdicts that are named. */
const MOST_CHANGES = 20;

export function AgainPanel({ job }: { job: TrainingJob }) {
  const { route } = useLocation();
  const own = JSON.stringify(job.config, null, 1);
  const text = useSignal(own);
  const state = useSignal<Comparison | string | null>(null);
  const path = job.kind === "sft" ? "/preview/sft-training-jobs" : "/preview/training-jobs";
  /** Without a configuration the job's own holds. */
  const send = <Answer,>(isDry: boolean): Promise<Answer> =>
    postJson<Answer>(path, {
      ...{ from_job: job.id, dry_run: isDry },
      ...(text.value === own ? {} : { config: JSON.parse(text.value) }),
    });
  const attempt = async (work: () => Promise<Comparison | null>) => {
    state.value = "asking…";
    state.value = await work().catch(messageOf);
  };
  const look = async () => compareOutcomes((job.report ?? null) as Outcomes | null, await send<Outcomes>(true));
  const train = async () => {
    const { id } = await send<TrainingJob>(false);
    route(`/jobs/${id}`);
    return null;
  };
  if (!may("training")) return null;
  return (
    <div class="again">
      <div class="row">
        <button type="button" onClick={() => void attempt(look)}>
          Again as dry run
        </button>
        {job.kind === "rl" && <a href={`/jobs/${job.id}/lab`}>Loss lab</a>}
      </div>
      <details>
        <summary>Again with changes</summary>
        <label class="sr-only" for="again-config">
          Configuration
        </label>
        <textarea
          id="again-config"
          rows={12}
          spellcheck={false}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <div class="row">
          <button type="button" onClick={() => void attempt(look)}>
            Dry run with these
          </button>
          <ConfirmButton
            label="train again"
            question="This makes a new step of the policy."
            onConfirm={() => void attempt(train)}
          />
        </div>
      </details>
      <div role="status">
        {typeof state.value === "string" ? (
          <p>{state.value}</p>
        ) : (
          state.value !== null && <Told told={state.value} id={job.id} />
        )}
      </div>
    </div>
  );
}

function Told({ told: { before, now, changes, otherAdvantages }, id }: { told: Comparison; id: string }) {
  return (
    <>
      <p class="row">
        now <Verdicts verdicts={now} job="COMPLETED" />
        {Object.keys(before).length > 0 && (
          <>
            then <Verdicts verdicts={before} job="COMPLETED" />
          </>
        )}
      </p>
      <p>
        {changes.length === 0 ? "No verdict changes" : `${count(changes.length, "verdict")} would change`}, and{" "}
        {otherAdvantages === 0 ? "no advantage" : count(otherAdvantages, "advantage")}. Nothing was trained.
      </p>
      <ul>
        {changes.slice(0, MOST_CHANGES).map(({ group, trajectory, before: was, now: is, message }) => (
          <li key={`${group} ${trajectory}`}>
            <a href={`/jobs/${id}/${group}/${trajectory}`}>
              group {group}, rollout {trajectory + 1}
            </a>
            : {was} → {is} <span class="muted">{message}</span>
          </li>
        ))}
      </ul>
      {changes.length > MOST_CHANGES && <p class="muted">and {number(changes.length - MOST_CHANGES)} more</p>}
    </>
  );
}
