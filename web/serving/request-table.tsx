// The requests in progress, one by one, and the way to end one.
import { useSignal } from "@preact/signals";
import type { RunningRequest } from "../../src/client/types.ts";
import { duration, number } from "../format.ts";
import { callJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { rateOf } from "./engine-state.ts";

export function RequestTable({ requests }: { requests: readonly RunningRequest[] }) {
  const problem = useSignal<string | null>(null);
  const cancel = async (id: string) => {
    problem.value = await callJson("DELETE", `/engine/requests/${encodeURIComponent(id)}`).then(
      () => null,
      (error: unknown) => messageOf(error),
    );
  };
  return (
    <section aria-label="Requests in progress">
      <h2>Requests in progress</h2>
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {requests.length === 0 ? (
        <p class="muted">none</p>
      ) : (
        <div class="table-scroll">
          <table>
            <thead>
              <tr>
                <th>request</th>
                <th>who</th>
                <th>model</th>
                <th>state</th>
                <th>prompt (cached)</th>
                <th>out</th>
                <th>tokens/s</th>
                <th>age</th>
                <th>priority</th>
                <th>
                  <span class="sr-only">end it</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {requests.map((row) => {
                const rate = rateOf(row);
                return (
                  <tr key={row.id}>
                    <td class="mono">{row.id.slice(0, 13)}</td>
                    <td>{row.who}</td>
                    <td>{row.model}</td>
                    <td>{row.state}</td>
                    <td class="num">
                      {number(row.prompt)} {row.cached !== null && <span class="muted">({number(row.cached)})</span>}
                    </td>
                    <td class="num">{number(row.output)}</td>
                    <td class="num">{rate === null ? "" : number(rate)}</td>
                    <td class="num">{duration(row.age_ms)}</td>
                    <td class="num">{row.priority}</td>
                    <td>
                      <button type="button" class="small danger" onClick={() => void cancel(row.id)}>
                        cancel
                      </button>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
