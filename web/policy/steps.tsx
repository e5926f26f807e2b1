// The steps of a policy: chat with one, roll back to it, fork it, download it, delete it.
import type { Checkpoint, DeletedCheckpoints, TrainableModel } from "../../src/client/types.ts";
import { bytes, number } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { Moment } from "../parts/moment.tsx";
import type { Column } from "../parts/sort.tsx";
import { call, callJson, postJson } from "../server.ts";
import { ForkButton } from "./fork-button.tsx";
import { TableSection, useAttempt } from "./table-section.tsx";

/** Columns of the table; the first name that a step has counts. */
const METRICS = [
  { title: "reward", keys: ["train/reward", "reward"] },
  { title: "validation", keys: ["val/reward"] },
  { title: "loss", keys: ["loss"] },
  { title: "entropy", keys: ["entropy"] },
  { title: "KL", keys: ["kl_old_new_k3"] },
];

export interface StepsProps {
  policy: TrainableModel;
  /** The newest first. */
  rows: readonly Checkpoint[];
  /** Older steps are not among the rows. */
  hasMore: boolean;
  onChange: () => void;
}

export function Steps({ policy, rows, hasMore, onChange }: StepsProps) {
  const { problem, attempt } = useAttempt(onChange);
  const metrics = METRICS.filter(({ keys }) => rows.some((row) => metricOf(row, keys) !== undefined));
  const newest = rows[0]?.step ?? 0;
  const columns: Column<Checkpoint>[] = [
    { title: "step", value: ({ step }) => step },
    ...metrics.map(({ title, keys }) => ({ title, value: (row: Checkpoint) => metricOf(row, keys) ?? null })),
    { title: "made by", value: ({ job_id, origin }) => job_id ?? origin },
    { title: "made", value: ({ created_at }) => created_at },
    { title: "disk", value: ({ bytes }) => bytes },
  ];
  return (
    <TableSection
      title="Steps"
      problem={problem}
      columns={columns}
      rows={rows}
      sortName="steps"
      row={(row) => (
        <tr key={row.id}>
          <th scope="row" class="num no-wrap">
            <b>{row.step}</b> {row.step === newest && <span class="chip good">newest</span>}
          </th>
          {metrics.map(({ title, keys }) => (
            <td key={title} class="num">
              {number(metricOf(row, keys) ?? Number.NaN)}
            </td>
          ))}
          <td class="muted">
            {row.job_id === null ? (
              row.origin
            ) : (
              <a href={`/jobs/${encodeURIComponent(row.job_id)}`}>job {row.job_id.slice(0, 8)}</a>
            )}
          </td>
          <td class="num muted no-wrap">
            <Moment at={row.created_at} />
          </td>
          <td class="num muted no-wrap">{bytes(row.bytes)}</td>
          <td>
            <Actions policy={policy} step={row.step} newest={newest} attempt={attempt} />
          </td>
        </tr>
      )}
    >
      {hasMore && (
        <p class="muted">
          These are the newest {rows.length}. <code>flywheel policies {policy.name}</code> lists them all.
        </p>
      )}
    </TableSection>
  );
}

interface ActionsProps {
  policy: TrainableModel;
  step: number;
  newest: number;
  attempt: (work: Promise<unknown>) => void;
}

function Actions({ policy, step, newest, attempt }: ActionsProps) {
  const path = `/preview/models/${encodeURIComponent(policy.id)}`;
  return (
    <div class="row step-actions">
      <a href={`/?m=${encodeURIComponent(`${policy.name}@${step}`)}`} aria-label={`Chat with step ${step}`}>
        chat
      </a>
      <button
        type="button"
        class="small"
        aria-label={`Download the adapter of step ${step}`}
        onClick={() => attempt(download(path, policy.name, step))}
      >
        download
      </button>
      <ForkButton policy={policy} step={step} />
      {step !== newest && (
        <>
          <ConfirmButton
            label="roll back"
            name={`Roll back to step ${step}`}
            question={`Step ${newest + 1} gets the weights of step ${step}.`}
            onConfirm={() => attempt(postJson(`${path}/rollback`, { step }))}
          />
          <ConfirmButton
            label="delete"
            name={`Delete step ${step}`}
            question="Its weights go for good."
            onConfirm={() => attempt(remove(path, step))}
          />
        </>
      )}
    </div>
  );
}

function metricOf({ metrics }: Checkpoint, keys: readonly string[]): number | undefined {
  return keys.map((key) => metrics[key]).find((value) => value !== undefined);
}

async function remove(path: string, step: number): Promise<void> {
  const done = await callJson<DeletedCheckpoints>("DELETE", `${path}/checkpoints`, { body: { steps: [step] } });
  if (done.kept_steps.length > 0) throw new Error(`A request or a job uses step ${step}. Try again when it is over.`);
}

/** By hand, because a link cannot carry the key. */
async function download(path: string, name: string, step: number): Promise<void> {
  const response = await call("GET", `${path}/checkpoints/${step}/adapter`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `${name}-step-${step}.tar`;
  link.click();
  URL.revokeObjectURL(link.href);
}
