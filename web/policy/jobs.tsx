// The jobs of a policy, the newest first.

import { useSignal } from "@preact/signals";
import type { TrainingJob } from "../../src/client/types.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { TableScroll } from "../parts/table-scroll.tsx";
import { postJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { jobWords, verdictWords } from "./rows.ts";

export function Jobs({ rows, onChange }: { rows: readonly TrainingJob[]; onChange: () => void }) {
  const problem = useSignal<string | null>(null);
  const cancel = (id: string) => {
    problem.value = null;
    postJson(`/preview/training-jobs/${encodeURIComponent(id)}/cancel`, {}).then(onChange, (error: unknown) => {
      problem.value = messageOf(error);
    });
  };
  return (
    <section aria-label="Jobs">
      <h2>Jobs</h2>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      {rows.length === 0 ? (
        <p class="muted">none</p>
      ) : (
        <TableScroll label="Table of jobs">
          <table>
            <thead>
              <tr>
                <th scope="col">job</th>
                <th scope="col">steps</th>
                <th scope="col">state</th>
                <th scope="col">tries</th>
                <th scope="col">
                  <span class="sr-only">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Row key={row.id} row={row} onCancel={() => cancel(row.id)} />
              ))}
            </tbody>
          </table>
        </TableScroll>
      )}
    </section>
  );
}

function Row({ row, onCancel }: { row: TrainingJob; onCancel: () => void }) {
  const { text, mood } = jobWords(row, Date.now());
  const isOpen = row.status === "PENDING" || row.status === "RUNNING";
  const short = row.id.slice(0, 8);
  return (
    <tr>
      <th scope="row" class="mono">
        <a href={`/jobs/${encodeURIComponent(row.id)}`}>{short}</a>
      </th>
      <td class="num no-wrap">
        {row.from_step ?? "?"} → {row.step ?? "…"}
      </td>
      <td>
        <span class={`chip ${mood}`}>{text}</span>
        {row.status === "RUNNING" && <progress value={row.progress ?? 0} max={1} aria-label="Progress" />}
      </td>
      <td class="muted">{verdictWords(row.totals)}</td>
      <td>
        {isOpen && (
          <ConfirmButton
            label="cancel"
            name={`Cancel job ${short}`}
            question="It makes no step."
            onConfirm={onCancel}
          />
        )}
      </td>
    </tr>
  );
}
