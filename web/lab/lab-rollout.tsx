// From the lab to the server: a dry run that checks the page's numbers, and a job with the new settings.
import { useSignal } from "@preact/signals";
import type { TrainingJob } from "../../src/client/types.ts";
import { count, number } from "../format.ts";
import { Verdicts } from "../jobs/group-list.tsx";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { useLocation } from "../router.ts";
import { postJson } from "../server.ts";
import { may } from "../server-facts.ts";
import { messageOf } from "../session.ts";
import type { Config } from "./knobs.ts";
import { placeOf, type Rewards, type Signals } from "./signals.ts";
import type { DryRun } from "./use-lab-data.ts";

export interface LabRolloutProps {
  id: string;
  policy: string;
  config: Config;
  rewards: Rewards;
  signals: Signals;
}

interface Agreement {
  verdicts: Record<string, number>;
  rollouts: number;
  /** Largest difference of an advantage between the server and the page. */
  difference: number;
}

export function LabRollout({ id, policy, config, rewards, signals }: LabRolloutProps) {
  const { route } = useLocation();
  const state = useSignal<Agreement | string | null>(null);
  const body = {
    from_job: id,
    config,
    rewards: Object.entries(rewards).map(([place, reward]) => {
      const [group, trajectory] = place.split(".").map(Number);
      return { group, trajectory, reward };
    }),
  };
  const attempt = async (work: () => Promise<Agreement | null>) => {
    state.value = "asking…";
    state.value = await work().catch(messageOf);
  };
  const look = async () => {
    const answer = await postJson<DryRun>("/preview/training-jobs", { ...body, dry_run: true });
    return agreementOf(answer, signals);
  };
  const train = async () => {
    const job = await postJson<TrainingJob>("/preview/training-jobs", body);
    route(`/jobs/${job.id}`);
    return null;
  };
  if (!may("training")) return null;
  return (
    <div class="row">
      <button type="button" onClick={() => void attempt(look)}>
        Try on the server as a dry run
      </button>
      <ConfirmButton
        label="train with these"
        question={`This makes a new step of ${policy}.`}
        onConfirm={() => void attempt(train)}
      />
      <span class="row" role="status">
        {typeof state.value === "string"
          ? state.value
          : state.value !== null && (
              <>
                <Verdicts job="COMPLETED" verdicts={state.value.verdicts} />
                <span class="num">
                  {count(state.value.rollouts, "advantage")} compared with the server's: they differ by{" "}
                  {number(state.value.difference)} at the most
                </span>
              </>
            )}
      </span>
    </div>
  );
}

function agreementOf({ trajectories }: DryRun, { of }: Signals): Agreement {
  const verdicts: Record<string, number> = {};
  let difference = 0;
  for (const { group, trajectory, status, advantage } of trajectories) {
    verdicts[status] = (verdicts[status] ?? 0) + 1;
    const own = of.get(placeOf(group, trajectory))?.advantage ?? Number.NaN;
    difference = Math.max(difference, Math.abs(own - advantage));
  }
  return { verdicts, rollouts: trajectories.length, difference };
}
