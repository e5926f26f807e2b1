// The jobs of a policy, the newest first.
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { postJson } from "../server.ts";
import { type JobRow, jobWords, verdictWords } from "./rows.ts";

export function Jobs({ rows, onChange }: { rows: readonly JobRow[]; onChange: () => void }) {
  const cancel = (id: string) => {
    postJson(`/preview/training-jobs/${encodeURIComponent(id)}/cancel`, {}).then(onChange, onChange);
  };
  return (
    <section aria-label="Jobs">
      <h2>Jobs</h2>
      {rows.length === 0 && <p class="muted">none</p>}
      <div class="table-scroll">
        <table>
          <tbody>
            {rows.map((row) => {
              const { text, mood } = jobWords(row, Date.now());
              const isOpen = row.status === "PENDING" || row.status === "RUNNING";
              return (
                <tr key={row.id}>
                  <td class="mono">{row.id.slice(0, 8)}</td>
                  <td class="num">
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
                        name={`Cancel job ${row.id.slice(0, 8)}`}
                        question="It makes no step."
                        onConfirm={() => cancel(row.id)}
                      />
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
