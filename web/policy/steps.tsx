// The steps of a policy: chat with one, roll back to it, fork it, download it.

import { useSignal } from "@preact/signals";
import type { Checkpoint, TrainableModel } from "../../src/client/types.ts";
import { bytes, number } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { TableScroll } from "../parts/table-scroll.tsx";
import { call, postJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { ForkButton } from "./fork-button.tsx";

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
  const problem = useSignal<string | null>(null);
  const attempt = (work: () => Promise<unknown>) => {
    problem.value = null;
    work().then(onChange, (error: unknown) => {
      problem.value = messageOf(error);
    });
  };
  const path = `/preview/models/${encodeURIComponent(policy.id)}`;
  const metrics = METRICS.filter(({ keys }) => rows.some((row) => metricOf(row, keys) !== undefined));
  return (
    <section aria-label="Steps">
      <h2>Steps</h2>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      <TableScroll label="Table of steps">
        <table>
          <thead>
            <tr>
              <th scope="col">step</th>
              {metrics.map(({ title }) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
              <th scope="col">made by</th>
              <th scope="col">disk</th>
              <th scope="col">
                <span class="sr-only">actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={row.id}>
                <th scope="row" class="num no-wrap">
                  <b>{row.step}</b> {i === 0 && <span class="chip good">newest</span>}
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
                <td class="num muted no-wrap">{bytes(row.bytes)}</td>
                <td>
                  <div class="row step-actions">
                    <a
                      href={`/?m=${encodeURIComponent(`${policy.name}@${row.step}`)}`}
                      aria-label={`Chat with step ${row.step}`}
                    >
                      chat
                    </a>
                    <button
                      type="button"
                      class="small"
                      aria-label={`Download the adapter of step ${row.step}`}
                      onClick={() => attempt(() => download(path, policy.name, row.step))}
                    >
                      download
                    </button>
                    <ForkButton policy={policy} step={row.step} />
                    {i > 0 && (
                      <ConfirmButton
                        label="roll back"
                        name={`Roll back to step ${row.step}`}
                        question={`Step ${rows[0]!.step + 1} gets the weights of step ${row.step}.`}
                        onConfirm={() => attempt(() => postJson(`${path}/rollback`, { step: row.step }))}
                      />
                    )}
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableScroll>
      {hasMore && (
        <p class="muted">
          These are the newest {rows.length}. <code>flywheel models {policy.name}</code> lists them all.
        </p>
      )}
    </section>
  );
}

function metricOf({ metrics }: Checkpoint, keys: readonly string[]): number | undefined {
  return keys.map((key) => metrics[key]).find((value) => value !== undefined);
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
