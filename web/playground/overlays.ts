// What colours the tokens of a reply, and what the panel adds about a token: surprise, the difference to another column's
// model, and how much probability a constraint left. The last two ask the server once more; its answer is kept.
import { signal } from "@preact/signals";
import { percent } from "../format.ts";
import { postJson } from "../server.ts";
import { constraintNotes, type Position } from "./constraint-notes.ts";
import { type Exchange, isRunning } from "./reply.ts";
import { score } from "./scoring.ts";
import type { Colour } from "./settings.ts";
import { newest, servedName } from "./state.ts";
import type { TokenList } from "./token-list.ts";
import { surprise, type Token } from "./tokens.ts";

/** Answers as a column shows them. */
export interface Shown {
  model: string;
  exchange: Exchange;
  column: number;
}

/** By the tokens they are about. */
const kept = new WeakMap<TokenList, Map<string, unknown>>();
/** Raised when an answer has come, so that whoever reads one is shown again. */
const arrivals = signal(0);

/** What the server says about a finished reply, asked for once; null before it has answered, and if it refuses. */
function asked<Answer>(shown: Shown, index: number, key: string, ask: () => Promise<Answer>): Answer | null {
  arrivals.value;
  const exchange = shown.exchange;
  const { tokens } = exchange.replies[index]!;
  if (tokens.length === 0 || isRunning(exchange)) return null;
  const answers = kept.get(tokens) ?? new Map<string, unknown>();
  kept.set(tokens, answers);
  if (!answers.has(key)) {
    answers.set(key, null);
    ask().then(
      (answer) => {
        answers.set(key, answer);
        arrivals.value += 1;
      },
      () => {}, // without it there is no colour and no note
    );
  }
  return answers.get(key) as Answer | null;
}

/** The tokens of a reply under another model. */
function scored(shown: Shown, index: number, model: string): readonly Token[] | null {
  const { promptIds, replies } = shown.exchange;
  const ids = [...promptIds, ...replies[index]!.tokenIds];
  return asked(shown, index, model, () => score(model, ids, promptIds.length, 1));
}

/** What the constraint of a reply did at each token; null without one. A thought before the answer is not constrained. */
function inspected(shown: Shown, index: number): readonly Position[] | null {
  const { promptIds, replies, body } = shown.exchange;
  const { response_format, structured_outputs } = body;
  const { tokenIds, reasoning, branch } = replies[index]!;
  if ((response_format === undefined && structured_outputs === undefined) || reasoning !== "" || branch !== null)
    return null;
  const question = {
    ...{ model: servedName(shown), response_format, structured_outputs },
    ...{ tokens: tokenIds, prompt_token_ids: promptIds },
  };
  return asked(shown, index, "constraint", async () => {
    const answer = await postJson<{ positions: Position[] }>("/structured_outputs/inspect", question);
    return answer.positions;
  });
}

/** The model to compare with: the first column's, or for the first column the second's. */
function otherModel(shown: Shown): string | null {
  const other = newest.value[shown.column === 0 ? 1 : 0];
  return other === undefined || other === null || servedName(other) === servedName(shown) ? null : servedName(other);
}

/** Largest difference of log-probabilities that still gets a deeper colour. */
const FULL_DIFFERENCE = 3;

export function heatOf(colour: Colour, shown: Shown, index: number): (token: Token, i: number) => number | null {
  if (colour === "surprise") return ({ logprob }) => surprise(logprob);
  if (colour === "legal") {
    const positions = inspected(shown, index);
    return (_token, i) => (positions?.[i]?.legal_mass === undefined ? null : 1 - positions[i].legal_mass);
  }
  const other = otherModel(shown);
  const theirs = other === null ? null : scored(shown, index, other);
  return (token, i) => (theirs === null ? null : clamp((token.logprob - theirs[i]!.logprob) / FULL_DIFFERENCE));
}

export function notesOf(shown: Shown, index: number, at: number): string[] {
  const position = inspected(shown, index)?.[at];
  const other = otherModel(shown);
  const theirs = other === null ? undefined : scored(shown, index, other)?.[at];
  return [
    ...(position === undefined ? [] : constraintNotes(position)),
    ...(theirs === undefined ? [] : [`under ${other}: ${percent(Math.exp(theirs.logprob))}`]),
  ];
}

function clamp(value: number): number {
  return Math.max(-1, Math.min(1, value));
}
