// The jobs of a policy, the newest first.
import type { TrainingJob } from "../../src/client/types.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { postJson } from "../server.ts";
import { jobWords, verdictWords } from "./rows.ts";
import { TableSection, useAttempt } from "./table-section.tsx";

export function Jobs({ rows, onChange }: { rows: readonly TrainingJob[]; onChange: () => void }) {
  const { problem, attempt } = useAttempt(onChange);
  const cancel = (id: string) => attempt(postJson(`/preview/training-jobs/${encodeURIComponent(id)}/cancel`, {}));
  return (
    <TableSection
      title="Jobs"
      problem={problem}
      columns={["job", "steps", "state", "tries"]}
      rows={rows.map((row) => <Row key={row.id} row={row} onCancel={() => cancel(row.id)} />)}
    />
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
        {row.from_step ?? "?"} → {row.step ?? (isOpen ? "…" : "–")}
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
