// Time machine: one reply under every step of its policy. A row is a step, a column a token, the colour its log-probability: it
// shows when each token was learned or forgotten.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { number, percent } from "../format.ts";
import { listPolicies, stepsOf } from "../policies.ts";
import { policyNamed } from "../policy-name.ts";
import { messageOf } from "../session.ts";
import { Panel } from "./panel.tsx";
import { isRunning } from "./reply.ts";
import { score } from "./scoring.ts";
import { spread } from "./spread.ts";
import { newest } from "./state.ts";
import { label, surprise, type Token } from "./tokens.ts";

const MOST_STEPS = 24;
const AT_ONCE = 2;

interface Row {
  step: number;
  tokens: readonly Token[] | null;
}

export function TimeMachine() {
  const column = newest.value[0] ?? null;
  const rows = useSignal<readonly Row[]>([]);
  const problem = useSignal<string | null>(null);
  const cell = useSignal<{ step: number; at: number } | null>(null);
  const exchange = column?.exchange ?? null;
  const reply = exchange?.replies[column?.chosen ?? 0];
  const tokens = reply?.tokens.list() ?? [];
  const isOver = exchange !== null && !isRunning(exchange);
  const ids = reply?.tokenIds.join(" ");
  useEffect(() => {
    if (!isOver || reply === undefined || reply.tokenIds.length === 0) return;
    const gone = new AbortController();
    problem.value = null;
    rows.value = [];
    const all = [...exchange.promptIds, ...reply.tokenIds];
    const show = (next: readonly Row[]) => {
      if (!gone.signal.aborted) rows.value = next;
    };
    scoreSteps(column!.model, all, exchange.promptIds.length, show, gone.signal).catch((error: unknown) => {
      if (!gone.signal.aborted) problem.value = messageOf(error);
    });
    return () => gone.abort();
  }, [isOver, ids, column?.model]);
  const pointed = cell.value === null ? undefined : rows.value.find(({ step }) => step === cell.value!.step);
  const token = pointed?.tokens?.[cell.value!.at];
  return (
    <Panel title="Time machine" name="time-machine">
      {!isOver && <p>Ask a policy something. Its answer is then scored under every step.</p>}
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {rows.value.length > 0 && (
        <div class="table-scroll">
          <table class="heat-grid">
            <caption class="sr-only">Probability of every token of the answer under every step</caption>
            <thead>
              <tr>
                <th>step</th>
                {tokens.map((one, i) => (
                  <th key={i} class="mono" scope="col">
                    <span>{label(one)}</span>
                  </th>
                ))}
                <th>mean ln</th>
              </tr>
            </thead>
            <tbody>
              {rows.value.map((row) => (
                <GridRow
                  key={row.step}
                  row={row}
                  onCell={(at) => {
                    cell.value = { step: row.step, at };
                  }}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="muted" aria-live="polite">
        {token === undefined
          ? "In percent; the more colour, the more surprising. Point at a cell, or reach it with Tab."
          : `step ${cell.value!.step}, ${label(token)}: ${percent(Math.exp(token.logprob))}`}
      </p>
    </Panel>
  );
}

function GridRow({ row: { step, tokens }, onCell }: { row: Row; onCell: (at: number) => void }) {
  if (tokens === null) {
    return (
      <tr>
        <th scope="row">{step}</th>
        <td class="muted">…</td>
      </tr>
    );
  }
  const mean = tokens.reduce((sum, { logprob }) => sum + logprob, 0) / tokens.length;
  return (
    <tr>
      <th scope="row">{step}</th>
      {tokens.map((token, i) => (
        <td
          key={i}
          class="heat"
          style={{ "--share": `${Math.round(surprise(token.logprob) * 100)}%` }}
          onPointerEnter={() => onCell(i)}
        >
          <button type="button" onFocus={() => onCell(i)}>
            {Math.round(Math.exp(token.logprob) * 100)}
          </button>
        </td>
      ))}
      <td class="num">{number(mean)}</td>
    </tr>
  );
}

/** Two steps at a time: there are few places for adapters, and requests need some. */
async function scoreSteps(
  model: string,
  tokenIds: readonly number[],
  from: number,
  show: (rows: readonly Row[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const named = policyNamed(model, await listPolicies(signal));
  if (named === null) throw new Error(`${model} is no policy: it has one step only. Teach it something first.`);
  const steps = await stepsOf(named.policy.id, signal);
  let rows: Row[] = spread(steps, MOST_STEPS).map((step) => ({ step, tokens: null }));
  show(rows);
  const waiting = rows.map(({ step }) => step);
  const work = async () => {
    for (let step = waiting.pop(); step !== undefined && !signal.aborted; step = waiting.pop()) {
      const tokens = await score(`${named.policy.name}@${step}`, tokenIds, from, 1, signal);
      rows = rows.map((row) => (row.step === step ? { step, tokens } : row));
      show(rows);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
