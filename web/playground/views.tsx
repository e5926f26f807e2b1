// What is behind an answer: the request and the reply as JSON, the same as programs, and the prompt as the model saw it.
import { useSignal } from "@preact/signals";
import { count } from "../format.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { useQuery } from "../parts/use-query.ts";
import { beside, postJson } from "../server.ts";
import { asChoice } from "./reply.ts";
import { LANGUAGES, type Language, snippet } from "./snippets.ts";
import type { Column } from "./state.ts";
import { isSpecial } from "./tokens.ts";

export function RawView({ column }: { column: Column }) {
  const exchange = column.exchange!;
  const request = JSON.stringify(exchange.body, null, 2);
  const reply = JSON.stringify(
    {
      model: exchange.model,
      choices: exchange.replies.map((_reply, i) => asChoice(exchange, i)),
      error: exchange.error,
    },
    null,
    2,
  );
  return (
    <div class="raw-view">
      <h3>
        Request <CopyButton text={request} what="the request" />
      </h3>
      <Scrolled text={request} />
      <CopyAs column={column} />
      <h3>
        Reply, put together <CopyButton text={reply} what="the reply" />
      </h3>
      <Scrolled text={reply} />
      <details>
        <summary>{count(exchange.events.length, "event")} as they came</summary>
        <Scrolled text={exchange.events.join("\n\n")} />
      </details>
    </div>
  );
}

/** The keyboard reaches it, so that it can be scrolled without a pointer. */
function Scrolled({ text }: { text: string }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must take the focus
  return <pre tabIndex={0}>{text}</pre>;
}

function CopyAs({ column }: { column: Column }) {
  const language = useSignal<Language | null>(null);
  const body = column.exchange!.body;
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
export function PromptView({ column }: { column: Column }) {
  const { model, messages, chat_template_kwargs, tools } = column.exchange!.body;
  const body = { model, messages, chat_template_kwargs, tools, return_token_strs: true };
  const { data, error } = useQuery(JSON.stringify(body), (signal) =>
    postJson<Tokenized>(beside("/tokenize"), body, { signal }),
  );
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">…</p>;
  const cached = column.exchange!.cachedTokens ?? 0;
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
