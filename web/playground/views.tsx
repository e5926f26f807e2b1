// What is behind an answer: the request and the reply as JSON, the same as programs, and the prompt as the model saw it.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { count, number } from "../format.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { useQuery } from "../parts/use-query.ts";
import { beside, postJson } from "../server.ts";
import type { Body } from "./message.ts";
import { asChoice, isRunning } from "./reply.ts";
import { LANGUAGES, type Language, snippet } from "./snippets.ts";
import { isSpecial } from "./tokens.ts";
import type { Answers } from "./tree.ts";

export function RawView({ turn: { exchange } }: { turn: Answers }) {
  if (isRunning(exchange)) return <p class="muted">…</p>;
  const reply = {
    model: exchange.model,
    choices: exchange.replies.map((_reply, i) => asChoice(exchange, i)),
    error: exchange.error,
  };
  return (
    <div class="raw-view">
      <Json title="Request" what="the request" value={exchange.body} />
      <CopyAs body={exchange.body} />
      <Json title="Reply, put together" what="the reply" value={reply} />
    </div>
  );
}

/** As much as is shown at once. */
const MOST_SHOWN = 20_000;

function Json({ title, what, value }: { title: string; what: string; value: unknown }) {
  const isAll = useSignal(false);
  const text = useMemo(() => JSON.stringify(value, null, 1), [value]);
  const isCut = text.length > MOST_SHOWN && !isAll.value;
  return (
    <>
      <h2>
        {title} <CopyButton text={text} what={what} />
      </h2>
      <Scrolled text={isCut ? `${text.slice(0, MOST_SHOWN)}…` : text} />
      {isCut && (
        <button
          type="button"
          class="small"
          onClick={() => {
            isAll.value = true;
          }}
        >
          Show all {number(text.length)} characters
        </button>
      )}
    </>
  );
}

/** The keyboard reaches it, so that it can be scrolled without a pointer. */
function Scrolled({ text }: { text: string }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus
  return <pre tabIndex={0}>{text}</pre>;
}

function CopyAs({ body }: { body: Body }) {
  const language = useSignal<Language | null>(null);
  const text = language.value === null ? "" : snippet(language.value, body, location.origin);
  return (
    <div>
      <div class="row">
        Copy as
        {LANGUAGES.map((name) => (
          <button
            key={name}
            type="button"
            class="small"
            aria-pressed={language.value === name}
            onClick={() => {
              language.value = language.value === name ? null : name;
            }}
          >
            {name}
          </button>
        ))}
        {text !== "" && <CopyButton text={text} what={`as ${language.value}`} />}
      </div>
      {text !== "" && <Scrolled text={text} />}
    </div>
  );
}

interface Tokenized {
  count: number;
  tokens: number[];
  token_strs: string[];
}

/** The prompt as text, ids and special tokens, with the part that was in the prefix cache marked. */
export function PromptView({ turn: { exchange } }: { turn: Answers }) {
  const { model, messages, chat_template_kwargs, tools } = exchange.body;
  const body = { model, messages, chat_template_kwargs, tools, return_token_strs: true };
  const { data, error } = useQuery(JSON.stringify(body), (signal) =>
    postJson<Tokenized>(beside("/tokenize"), body, { signal }),
  );
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">…</p>;
  const cached = exchange.cachedTokens ?? 0;
  return (
    <div class="prompt-view">
      <p class="muted">
        {count(data.count, "token")}, {cached} of them from the prefix cache
      </p>
      <ol class="prompt-tokens">
        {data.tokens.map((id, i) => {
          const text = readable(data.token_strs[i]!);
          const names = [isSpecial(text) ? "special" : "", i < cached ? "cached" : ""].join(" ");
          return (
            <li key={i} class={names}>
              <span class="mono">{text}</span>
              <span class="muted num">{id}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** Pieces of byte-level vocabularies write a space as Ġ and a line end as Ċ; others write a space as ▁. */
function readable(piece: string): string {
  return piece.replaceAll("Ġ", "␣").replaceAll("▁", "␣").replaceAll("Ċ", "⏎").replaceAll("ĉ", "⇥");
}
