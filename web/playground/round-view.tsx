// A question and its answers: the newest with everything there is, earlier ones with the answer that the conversation went on with.
import { number, percent } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { still } from "../parts/still.ts";
import { useLocation } from "../router.ts";
import { edit, regenerate } from "./asking.ts";
import { Card } from "./card.tsx";
import { branch, removeTurn } from "./chat-actions.ts";
import { isAboutConstraint } from "./constraint.ts";
import { distribution } from "./distribution.ts";
import { isRunning } from "./reply.ts";
import type { View } from "./settings.ts";
import { chat, editing, isBusy, pick, sides, update, versions } from "./state.ts";
import { ToolResults } from "./tool-results.tsx";
import { type Answers, placeKey, type Question } from "./tree.ts";
import { Versions } from "./versions.tsx";
import { PromptView, RawView } from "./views.tsx";

export interface RoundProps {
  model: string;
  /** Of the column. */
  index: number;
  question: Question;
  answers: Answers | null;
  reply: number;
  /** Counts from 1. */
  number: number;
  isNewest: boolean;
  isLeftOut: boolean;
  isFirstSent: boolean;
  view: View;
  questionVersion: number;
  questionVersions: number;
  answerVersion: number;
  answerVersions: number;
}

export const RoundView = still(function RoundView(props: RoundProps) {
  const { answers, isNewest, isLeftOut, isFirstSent, view, index } = props;
  const error = answers?.exchange.error ?? null;
  return (
    <>
      {isFirstSent && (
        <p class="cut muted">
          The turns above are not sent any more.{" "}
          <button type="button" class="small" onClick={() => update({ startsAt: null })}>
            Send them again
          </button>
        </p>
      )}
      <div class={`round ${isLeftOut ? "left-out" : ""} ${isNewest ? "newest" : ""}`}>
        <QuestionView {...props} />
        {answers === null ? (
          isNewest && (
            <p class="muted">
              There is no answer yet.{" "}
              <button type="button" class="small" disabled={isBusy.value} onClick={() => void regenerate()}>
                Ask
              </button>
            </p>
          )
        ) : (
          <>
            {isNewest && view === "raw" && <RawView turn={answers} />}
            {isNewest && view === "prompt" && <PromptView turn={answers} />}
            {!(isNewest && (view === "raw" || view === "prompt")) && <AnswersView {...props} answers={answers} />}
            {answers.exchange.state === "lost" && (
              <p class="muted">The connection broke. This is asked again when the server is back.</p>
            )}
            {error !== null && !isAboutConstraint(error.param) && (
              <p class="problem" role="alert">
                {error.message}{" "}
                {isNewest && (
                  <button type="button" class="small" disabled={isBusy.value} onClick={() => void regenerate()}>
                    Try again
                  </button>
                )}
              </p>
            )}
            <ToolResults
              round={{ question: props.question, answers, reply: props.reply }}
              column={index}
              isNewest={isNewest}
            />
          </>
        )}
      </div>
    </>
  );
});

function QuestionView({ question, index, questionVersion, questionVersions, number: turn }: RoundProps) {
  const [first] = question.messages;
  if (first?.role === "tool") return null; // shown with the calls that it answers
  const isEdited = editing.value?.question === question.id;
  const show = (version: number) => {
    const ids = versions.value.questions.get(placeKey(question.after)) ?? [];
    pick(index, placeKey(question.after), ids[version]!);
  };
  return (
    <div class={`turn user ${isEdited ? "edited" : ""}`}>
      <span class="sr-only">You:</span>
      <div class="plain-text" dir="auto">
        {first?.content}
      </div>
      <div class="actions">
        <Versions of="the question" at={questionVersion} count={questionVersions} onShow={show} />
        <button type="button" class="small quiet" disabled={isBusy.value} onClick={() => edit(question)}>
          Edit
        </button>
        {!isBusy.value && (
          <ConfirmButton
            label="delete"
            name={`Delete turn ${turn}`}
            question="Delete this question and its answers?"
            isQuiet
            onConfirm={() => {
              removeTurn(question.id);
              document.getElementById("prompt")?.focus(); // the button is gone with the turn
            }}
          />
        )}
      </div>
    </div>
  );
}

function AnswersView(props: RoundProps & { answers: Answers }) {
  const { answers, index, model, reply, isNewest, view, question, answerVersion, answerVersions, number: turn } = props;
  const { exchange } = answers;
  const { replies, state } = exchange;
  const location = useLocation();
  const show = (version: number) => {
    const place = placesOf(question.id, isNewest, sides.value.length === 1 ? null : model)[version]!;
    pick(index, question.id, placeKey(place));
  };
  const versionsShown = <Versions of="the answer" at={answerVersion} count={answerVersions} onShow={show} />;
  const goOnElsewhere = async () => {
    const { rounds } = sides.value[index]!;
    location.route(`/?chat=${await branch(rounds.slice(0, turn))}`);
  };
  const isEmpty = replies.every(
    ({ tokenIds, content, toolCalls }) => tokenIds.length + content.length + toolCalls.length === 0,
  );
  if (isEmpty && ["failed", "stopped"].includes(state)) {
    return (
      <div class="actions">
        {state === "stopped" && <span class="muted">Stopped.</span>}
        {versionsShown}
      </div>
    );
  }
  const actions = (
    <>
      {versionsShown}
      {!isNewest && <CopyButton text={replies[reply]?.content ?? ""} what={`answer of turn ${turn}`} />}
      <button
        type="button"
        class="small quiet"
        title="A chat of its own, with all up to here"
        onClick={() => void goOnElsewhere()}
      >
        Branch
      </button>
    </>
  );
  // one answer has them in its own last line
  const isAlone = isNewest && replies.length === 1;
  const shown = isNewest ? replies.map((_reply, i) => i) : [Math.min(reply, replies.length - 1)];
  return (
    <>
      <div class="cards">
        {shown.map((i) => (
          <Card
            key={i}
            {...{ turn: answers, model, column: index, index: i, isNewest, view, question }}
            isChosen={i === reply}
            actions={isAlone ? actions : null}
          />
        ))}
      </div>
      {state === "stopped" && <p class="muted">Stopped.</p>}
      {isNewest && replies.length > 2 && <Distribution texts={replies.map(({ content }) => content)} />}
      {!isRunning(exchange) && !isAlone && <div class="actions">{actions}</div>}
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

/** The newest answers are shown together, so their versions are whole sets. Columns keep to their own model. */
export function placesOf(question: string, isNewest: boolean, model: string | null) {
  const places = versions.value.places.get(question) ?? [];
  return places.filter(({ turn, reply }) => {
    const answers = chat.value.turns.get(turn);
    const isOwn = model === null || (answers?.kind === "answers" && answers.exchange.body.model === model);
    return isOwn && (!isNewest || reply === 0);
  });
}
