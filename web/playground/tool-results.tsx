// Tool calls of an answer, folded, with their results: those that were given, or fields to type them.
import { useSignal } from "@preact/signals";
import { messageOf } from "../session.ts";
import { answerCalls } from "./asking.ts";
import { calledServer, callTool } from "./mcp.ts";
import { isRunning, type ToolCall } from "./reply.ts";
import { isBusy, problem, settings, sides } from "./state.ts";
import { toolOf } from "./tools.ts";
import { type Round, replyOf } from "./tree.ts";

export function ToolResults({ round, column, isNewest }: { round: Round; column: number; isNewest: boolean }) {
  const calls = replyOf(round)?.toolCalls ?? [];
  if (calls.length === 0) return null;
  const given = isNewest ? null : givenResults(column, round);
  return (
    <div class="tool-calls">
      {calls.map((call, i) => (
        <Call key={call.id || i} call={call} result={given?.[i] ?? null} />
      ))}
      {isNewest && isBusy.value && calledServer.value !== null && <p class="muted">{calledServer.value} is asked…</p>}
      {isNewest && round.answers !== null && !isRunning(round.answers.exchange) && !isBusy.value && (
        <Results calls={calls} onSend={(results) => void answerCalls(column, round, results)} />
      )}
    </div>
  );
}

/** The next question of the column, if it has the results of these calls. */
function givenResults(column: number, round: Round): (string | null)[] | null {
  const rounds = sides.value[column]?.rounds ?? [];
  const at = rounds.findIndex(({ question }) => question.id === round.question.id);
  const next = rounds[at + 1]?.question.messages ?? [];
  return next[0]?.role === "tool" ? next.map(({ content }) => content) : null;
}

function Call({ call: { name, arguments: text }, result }: { call: ToolCall; result: string | null }) {
  return (
    <details class="tool-call">
      <summary>
        <span class="chip">tool</span> <b class="mono">{name}</b>
        <span class="mono one-line muted">({text})</span>
        {result !== null && <span class="mono one-line muted"> → {result}</span>}
      </summary>
      <pre>{indented(text)}</pre>
      {result !== null && (
        <>
          <p class="muted">Result</p>
          <pre>{indented(result)}</pre>
        </>
      )}
    </details>
  );
}

/** JSON as it reads best; another text as it is. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Results({ calls, onSend }: { calls: readonly ToolCall[]; onSend: (results: string[]) => void }) {
  const { tools } = settings.value;
  const typed = useSignal<readonly string[]>(
    calls.map(({ name }) => tools.find((tool) => tool.name === name)?.result ?? ""),
  );
  const put = (index: number, value: string) => {
    typed.value = calls.map((_call, other) => (other === index ? value : (typed.value[other] ?? "")));
  };
  const ask = async (index: number) => {
    problem.value = null;
    try {
      put(index, await callTool(toolOf(calls[index]!, tools)!, calls[index]!));
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <form
      class="tool-results"
      onSubmit={(event) => {
        event.preventDefault();
        onSend(calls.map((_call, i) => typed.value[i] ?? ""));
      }}
    >
      {calls.map((call, i) => {
        const server = toolOf(call, tools)?.server;
        return (
          <div key={call.id || i} class="tool-result">
            <label class="stacked">
              <span>
                Result of <b class="mono">{call.name}</b>
              </span>
              <textarea
                class="mono"
                rows={2}
                spellcheck={false}
                value={typed.value[i] ?? ""}
                onInput={({ currentTarget: { value } }) => put(i, value)}
              />
            </label>
            {server !== undefined && (
              <button type="button" class="small" disabled={calledServer.value !== null} onClick={() => void ask(i)}>
                Ask {server.name}
              </button>
            )}
          </div>
        );
      })}
      <button type="submit" class="small primary">
        {calls.length === 1 ? "Give the result" : "Give the results"}
      </button>
    </form>
  );
}
