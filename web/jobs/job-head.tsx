// What a job is and how far it is, with the button that ends it.
import { useSignal } from "@preact/signals";
import type { TrainingEvent, TrainingJob } from "../../src/client/types.ts";
import { bytes, count, duration, number } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { localTime } from "../parts/moment.tsx";
import { timeLeft, verdictWord } from "../policy/rows.ts";
import { postJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { jobPath } from "../training-jobs.ts";
import { Verdicts } from "./group-list.tsx";
import { LossLine } from "./loss-line.tsx";

const STATUS_CLASS: Partial<Record<TrainingJob["status"], string>> = {
  COMPLETED: "good",
  FAILED: "bad",
  CANCELLED: "warn",
};

export interface JobHeadProps {
  job: TrainingJob;
  gradientSteps: readonly TrainingEvent[];
  onChanged: () => void;
}

export function JobHead({ job, gradientSteps, onChanged }: JobHeadProps) {
  const isOpen = job.status === "PENDING" || job.status === "RUNNING";
  return (
    <header class="job-head">
      <div class="row">
        <h1>
          Job <span class="mono">{job.id.slice(0, 8)}</span>
        </h1>
        <CopyButton text={job.id} what="the id of the job" />
        <span class={`chip ${STATUS_CLASS[job.status] ?? ""}`} role="status">
          {job.status}
        </span>
        <span>
          {job.kind === "sft" ? "supervised, " : ""}
          {job.from_step !== null && `from step ${job.from_step}`}
          {job.step !== null && ` to step ${job.step}`}
        </span>
        <a href={`/policies/${job.model_id}`}>policy</a>
        <Progress job={job} seen={gradientSteps.length} />
        {isOpen && <Cancel id={job.id} onChanged={onChanged} />}
      </div>
      {job.error_message !== null && <p class="problem">{job.error_message}</p>}
      <LossLine events={gradientSteps} />
      <Totals job={job} />
    </header>
  );
}

/** `seen`: gradient steps that were told since the job was asked for. */
function Progress({ job, seen }: { job: TrainingJob; seen: number }) {
  const { gradient_steps: steps, status } = job;
  if (steps === null || status === "COMPLETED") return null;
  const done = Math.max(steps.done, seen);
  const left = timeLeft(job, done, Date.now());
  return (
    <span class="num">
      <progress value={done} max={Math.max(1, steps.total)} aria-label="Gradient steps" /> {done} of{" "}
      {count(steps.total, "gradient step")}
      {left !== null && `, about ${duration(left)} left`}
    </span>
  );
}

function Cancel({ id, onChanged }: { id: string; onChanged: () => void }) {
  const problem = useSignal("");
  const cancel = () =>
    postJson(`${jobPath(id)}/cancel`, undefined).then(onChanged, (error: unknown) => {
      problem.value = messageOf(error);
    });
  return (
    <>
      <ConfirmButton label="cancel" question="What it trained so far is lost. Cancel?" onConfirm={cancel} />
      <span role="alert" class="problem">
        {problem.value}
      </span>
    </>
  );
}

function Totals({
  job: { totals, report, training_start: start, training_end: end, attempts, kind, status },
}: {
  job: TrainingJob;
}) {
  const usage = report?.usage ?? null;
  const facts = [
    totals !== null && count(totals.groups, kind === "sft" ? "example" : "group"),
    totals !== null && kind !== "sft" && count(totals.trajectories, "rollout"),
    totals !== null &&
      `${count(totals.tokens, "token")}, ${number(totals.trainable_tokens)} of them ${verdictWord("trained", status)}`,
    start !== null && `began ${localTime(start)}`,
    start !== null && end !== null && duration(Date.parse(end) - Date.parse(start)),
    usage !== null && `${bytes(usage.peak_bytes)} at the most`,
    attempts > 1 && `started ${attempts} times`,
  ].filter((fact) => fact !== false);
  return (
    <div class="row">
      {totals !== null && <Verdicts verdicts={totals.by_status} job={status} />}
      <span class="muted">{facts.join(" · ")}</span>
    </div>
  );
}
