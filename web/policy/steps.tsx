// The steps of a policy: chat with one, roll back to it, fork it, download it.
import { useSignal } from "@preact/signals";
import { bytes, number } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { call, postJson } from "../server.ts";
import { messageOf } from "../session.ts";
import type { PolicyRow, StepRow } from "./rows.ts";

export function Steps({
  policy,
  rows,
  onChange,
}: {
  policy: PolicyRow;
  rows: readonly StepRow[];
  onChange: () => void;
}) {
  const problem = useSignal<string | null>(null);
  const attempt = (work: () => Promise<unknown>) => {
    problem.value = null;
    work().then(onChange, (error: unknown) => {
      problem.value = messageOf(error);
    });
  };
  const path = `/preview/models/${encodeURIComponent(policy.id)}`;
  const rollBack = (step: number) => attempt(() => postJson(`${path}/rollback`, { step }));
  const fork = (step: number) =>
    attempt(() =>
      postJson("/preview/models", {
        project: policy.project,
        name: `${policy.name}-fork-${step}`,
        base_model: policy.base_model,
        from: { model_id: policy.id, step },
      }),
    );
  return (
    <section aria-label="Steps">
      <h2>Steps</h2>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      <div class="table-scroll">
        <table>
          <tbody>
            {rows.map((row, i) => (
              <tr key={row.id}>
                <td class="num">
                  <b>{row.step}</b> {i === 0 && <span class="chip good">newest</span>}
                </td>
                <td class="num">{number(row.metrics["train/reward"] ?? row.metrics.reward ?? Number.NaN)}</td>
                <td class="muted">{row.origin}</td>
                <td class="num muted">{bytes(row.bytes)}</td>
                <td class="row">
                  <a href={`/?m=${encodeURIComponent(`${policy.name}@${row.step}`)}`}>chat</a>
                  {row.job_id !== null && <a href={`/jobs/${encodeURIComponent(row.job_id)}`}>job</a>}
                  <button
                    type="button"
                    class="small"
                    onClick={() => attempt(() => download(path, policy.name, row.step))}
                  >
                    download
                  </button>
                  <button type="button" class="small" onClick={() => fork(row.step)}>
                    fork
                  </button>
                  {i > 0 && (
                    <ConfirmButton
                      label="roll back"
                      name={`Roll back to step ${row.step}`}
                      question={`Step ${rows[0]!.step + 1} gets the weights of step ${row.step}.`}
                      onConfirm={() => rollBack(row.step)}
                    />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
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
