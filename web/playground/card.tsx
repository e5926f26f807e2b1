// One answer: its text or its tokens, what it cost, and what can be done with it.
import { useSignal } from "@preact/signals";
import { count, duration, number } from "../format.ts";
import { Markdown } from "../markdown/markdown.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { heatOf, notesOf } from "./overlays.ts";
import { Replay } from "./replay-button.tsx";
import { type Exchange, isRunning, type Reply, speedOf } from "./reply.ts";
import { type Column, columns, continueFrom, put, settings } from "./state.ts";
import { TokenPanel } from "./token-panel.tsx";
import { TokenText } from "./token-text.tsx";
import { firstDifference } from "./tokens.ts";

export function Card({ column, columnIndex, index }: { column: Column; columnIndex: number; index: number }) {
  const exchange = column.exchange!;
  const reply = exchange.replies[index]!;
  const first = columns.value[0]?.exchange?.replies[index];
  const isCompared = columnIndex > 0 && first !== undefined && reply.branch === null;
  const differsAt = isCompared ? firstDifference(first.tokens, reply.tokens) : null;
  const isOver = !isRunning(exchange);
  return (
    <article class="card" aria-label={`Answer ${index + 1} of ${column.model}`} aria-busy={!isOver}>
      <header>
        <b>{index + 1}</b>
        {reply.branch !== null && (
          <span class="chip">
            from {reply.branch.of + 1}, token {reply.branch.at + 1}
          </span>
        )}
        {isCompared && reply.tokens.length > 0 && <Difference at={differsAt} isOver={isOver} />}
        <span class="spring" />
        {exchange.replies.length > 1 && (
          <label class="pick">
            <input
              type="radio"
              name={`chosen-${columnIndex}`}
              checked={column.chosen === index}
              onChange={() => put(columnIndex, { chosen: index })}
            />{" "}
            go on with this
          </label>
        )}
        <CopyButton text={reply.content} what={`answer ${index + 1}`} />
      </header>
      {reply.reasoning !== "" && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <div class="plain-text">{reply.reasoning}</div>
        </details>
      )}
      {settings.value.view === "tokens" ? (
        <Tokens {...{ column, columnIndex, index, reply, differsAt, isOver }} />
      ) : (
        <Markdown text={reply.content} />
      )}
      {reply.toolCalls.map(({ id, name, arguments: text }) => (
        <pre key={id}>
          {name}({text})
        </pre>
      ))}
      {reply.content === "" && reply.reasoning === "" && !isOver && <p class="muted">…</p>}
      <footer>
        <Facts exchange={exchange} reply={reply} />
        {isOver && reply.tokens.length > 0 && <Replay column={column} index={index} />}
      </footer>
    </article>
  );
}

function Difference({ at, isOver }: { at: number | null; isOver: boolean }) {
  if (at !== null) return <span class="chip warn">first differs: {at + 1}</span>;
  return isOver ? <span class="chip good">same tokens</span> : null;
}

interface TokensProps {
  column: Column;
  columnIndex: number;
  index: number;
  reply: Reply;
  differsAt: number | null;
  isOver: boolean;
}

function Tokens({ column, columnIndex, index, reply, differsAt, isOver }: TokensProps) {
  const active = useSignal<number | null>(null);
  const { colour } = settings.value;
  if (settings.value.alternatives === 0 && reply.tokens.length === 0) {
    return <p class="muted">There are no tokens to show without log-probabilities: choose one alternative or more.</p>;
  }
  const token = active.value === null ? undefined : reply.tokens[active.value];
  return (
    <>
      <TokenText
        tokens={reply.tokens}
        heat={heatOf(colour, column, index)}
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
          notes={notesOf(column, index, active.value!)}
          onContinue={
            isOver ? (alternative) => void continueFrom(columnIndex, index, active.value!, alternative) : null
          }
        />
      )}
    </>
  );
}

function Facts({ exchange, reply }: { exchange: Exchange; reply: Reply }) {
  const { firstTokenMs, tokensPerSecond } = speedOf(exchange);
  const parts = [
    count(reply.tokenIds.length, "token"),
    firstTokenMs === null ? null : `first after ${duration(firstTokenMs)}`,
    tokensPerSecond === null ? null : `${number(tokensPerSecond)} tokens/s`,
    exchange.cachedTokens === null ? null : `${number(exchange.cachedTokens)} of ${exchange.promptIds.length} cached`,
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
