// One answer: its text or its tokens, what it cost, and what can be done with it.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { count, duration, number } from "../format.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { useNear } from "../parts/use-near.ts";
import { choose } from "./asking.ts";
import { continueFrom } from "./branching.ts";
import { heatOf, notesOf } from "./overlays.ts";
import { Replay } from "./replay-button.tsx";
import { type Exchange, isRunning, type Reply, speedOf } from "./reply.ts";
import type { View } from "./settings.ts";
import { newest, settings } from "./state.ts";
import { TokenPanel } from "./token-panel.tsx";
import { TokenText } from "./token-text.tsx";
import { firstDifference } from "./tokens.ts";
import type { Answers, Question } from "./tree.ts";

export interface CardProps {
  turn: Answers;
  question: Question;
  model: string;
  /** Number of the column, and of the reply. */
  column: number;
  index: number;
  isNewest: boolean;
  /** The conversation goes on with it. */
  isChosen: boolean;
  view: View;
  /** More that can be done with it. */
  actions: ComponentChildren;
}

export function Card({ turn, question, model, column, index, isNewest, isChosen, view, actions }: CardProps) {
  const { exchange } = turn;
  const reply = exchange.replies[index];
  if (reply === undefined) return null;
  // earlier answers do not look at the newest, so that they are not drawn again with it
  const first = isNewest && column > 0 && reply.branch === null ? newest.value[0]?.exchange.replies[index] : undefined;
  const isCompared = first !== undefined;
  const differsAt = isCompared ? firstDifference(first.tokens.list(), reply.tokens.list()) : null;
  const isOver = !isRunning(exchange);
  const isOneOfMany = isNewest && exchange.replies.length > 1;
  const name = isNewest ? `Answer ${index + 1} of ${model}` : `Earlier answer of ${model}`;
  const wantsTokens = view === "tokens";
  return (
    <article class={isNewest ? "card" : "card earlier"} aria-label={name} aria-busy={!isOver}>
      {(isOneOfMany || isCompared || reply.branch !== null) && (
        <header>
          {isOneOfMany && <b>{index + 1}</b>}
          {reply.branch !== null && (
            <span class="chip">
              from {reply.branch.of + 1}, token {reply.branch.at + 1}
            </span>
          )}
          {isCompared && reply.tokens.length > 0 && <Difference at={differsAt} isOver={isOver} />}
          <span class="spring" />
          {isOneOfMany && (
            <label class="pick">
              <input
                type="radio"
                name={`chosen-${column}`}
                checked={isChosen}
                onChange={() => choose(column, { question, answers: turn, reply: index }, index)}
              />{" "}
              go on with this
            </label>
          )}
        </header>
      )}
      {reply.reasoning !== "" && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <div class="plain-text" dir="auto">
            {reply.reasoning}
          </div>
        </details>
      )}
      {wantsTokens && (reply.tokens.length > 0 || reply.content === "") ? (
        <Tokens {...{ turn, model, column, index, reply, differsAt, isOver }} />
      ) : (
        <Markdown text={reply.content} isGrowing={!isOver} />
      )}
      {reply.content === "" && reply.reasoning === "" && !isOver && <p class="muted">…</p>}
      {isNewest && (
        <footer>
          <Facts exchange={exchange} reply={reply} />
          {isOver && <CopyButton text={reply.content} what={`answer ${index + 1}`} />}
          {isOver && reply.tokens.length > 0 && <Replay exchange={exchange} index={index} />}
          {isOver && actions}
        </footer>
      )}
    </article>
  );
}

function Difference({ at, isOver }: { at: number | null; isOver: boolean }) {
  if (at !== null) return <span class="chip warn">first differs: {at + 1}</span>;
  return isOver ? <span class="chip good">same tokens</span> : null;
}

interface TokensProps {
  turn: Answers;
  model: string;
  column: number;
  index: number;
  reply: Reply;
  differsAt: number | null;
  isOver: boolean;
}

/** Tokens are elements of their own, so far-away ones wait until the reader comes near. */
function Tokens(props: TokensProps) {
  const { place, isNear } = useNear();
  return <div ref={place}>{isNear ? <NearTokens {...props} /> : <Markdown text={props.reply.content} />}</div>;
}

function NearTokens({ turn, model, column, index, reply, differsAt, isOver }: TokensProps) {
  const active = useSignal<number | null>(null);
  const { colour } = settings.value;
  if (settings.value.alternatives === 0 && reply.tokens.length === 0) {
    return <p class="muted">There are no tokens to show without log-probabilities: choose one alternative or more.</p>;
  }
  const tokens = reply.tokens.list();
  const token = active.value === null ? undefined : tokens[active.value];
  const shown = { model, exchange: turn.exchange, column };
  return (
    <>
      <TokenText
        tokens={tokens}
        heat={heatOf(colour, shown, index)}
        active={active.value}
        onActive={(next) => {
          active.value = next;
        }}
        differsAt={differsAt}
        branchAt={reply.branch?.at ?? null}
        label={`Tokens of answer ${index + 1}. Arrow keys walk along them.`}
      />
      {token !== undefined && (
        <TokenPanel
          token={token}
          index={active.value!}
          notes={notesOf(shown, index, active.value!)}
          onContinue={isOver ? (alternative) => void continueFrom(turn.id, index, active.value!, alternative) : null}
        />
      )}
    </>
  );
}

function Facts({ exchange, reply }: { exchange: Exchange; reply: Reply }) {
  const { firstTokenMs, tokensPerSecond } = speedOf(exchange, reply);
  const parts = [
    count(reply.tokenIds.length, "token"),
    firstTokenMs === null ? null : `first after ${duration(firstTokenMs)}`,
    tokensPerSecond === null ? null : `${number(tokensPerSecond)} tokens/s`,
    exchange.cachedTokens === null
      ? null
      : `${number(exchange.cachedTokens)} of ${number(exchange.promptIds.length)} cached`,
    reply.finish === "length" ? "cut at the limit" : null,
    reply.policyVersion === null ? null : `step ${reply.policyVersion}`,
  ];
  return (
    <p class="facts num">
      {parts
        .filter((part) => part !== null)
        .map((part) => (
          <span key={part}>{part}</span>
        ))}
    </p>
  );
}
