// One model's side of the conversation: what was said before, the newest question, and its answers as cards.
import { number, percent } from "../format.ts";
import { Markdown } from "../markdown/markdown.ts";
import { Card } from "./card.tsx";
import { isAboutConstraint } from "./constraint.ts";
import { distribution } from "./distribution.ts";
import { type Column, questionOf, settings } from "./state.ts";
import { PromptView, RawView } from "./views.tsx";

export function ColumnView({ column, index }: { column: Column; index: number }) {
  const { exchange } = column;
  const { view } = settings.value;
  return (
    <section class="column" aria-label={column.model}>
      <h2>{column.model}</h2>
      {column.turns.map(({ role, content }, i) => (
        <div key={i} class={`turn ${role}`}>
          <span class="role">{role}</span>
          {role === "assistant" ? <Markdown text={content} /> : <div class="plain-text">{content}</div>}
        </div>
      ))}
      {exchange !== null && (
        <>
          <div class="turn user">
            <span class="role">user</span>
            <div class="plain-text">{questionOf(column)}</div>
          </div>
          {exchange.error !== null && !isAboutConstraint(exchange.error.param) && (
            <p class="problem" role="alert">
              {exchange.error.message}
            </p>
          )}
          {view === "raw" && <RawView column={column} />}
          {view === "prompt" && <PromptView column={column} />}
          {(view === "text" || view === "tokens") && <Answers column={column} index={index} />}
        </>
      )}
    </section>
  );
}

function Answers({ column, index }: { column: Column; index: number }) {
  const { replies, state, error } = column.exchange!;
  const nothing = error !== null && replies.every(({ tokenIds, content }) => tokenIds.length === 0 && content === "");
  if (nothing) return null;
  return (
    <>
      <div class="cards">
        {replies.map((_reply, i) => (
          <Card key={i} column={column} columnIndex={index} index={i} />
        ))}
      </div>
      {state === "stopped" && <p class="muted">Stopped.</p>}
      {replies.length > 2 && <Distribution texts={replies.map(({ content }) => content)} />}
    </>
  );
}

const MOST_ANSWERS = 8;

function Distribution({ texts }: { texts: readonly string[] }) {
  const answers = distribution(texts);
  return (
    <details class="distribution" open={answers.length < texts.length}>
      <summary>
        {number(answers.length)} different of {number(texts.length)}
      </summary>
      <table>
        <caption class="sr-only">How often each answer was given</caption>
        <tbody>
          {answers.slice(0, MOST_ANSWERS).map(({ text, count }) => (
            <tr key={text}>
              <td class="num">{count}</td>
              <td class="num muted">{percent(count / texts.length)}</td>
              <td>
                <span class="bar" style={{ "--share": `${(count / texts.length) * 100}%` }} aria-hidden="true" />
                <span class="one-line">{text === "" ? "(empty)" : text}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
