// What colours the tokens of a reply, and what the panel adds about a token: surprise, the difference to another column's
// model, and how much probability a constraint left. The last two ask the server once more; its answer is kept.
import { signal } from "@preact/signals";
import { percent } from "../format.ts";
import { postJson } from "../server.ts";
import { constraintNotes, type Position } from "./constraint-notes.ts";
import { isRunning } from "./reply.ts";
import { score } from "./scoring.ts";
import type { Colour } from "./settings.ts";
import { type Column, columns, servedName } from "./state.ts";
import { surprise, type Token } from "./tokens.ts";

/** By the tokens they are about. Arrays of tokens are never reused. */
const kept = new WeakMap<readonly Token[], Map<string, unknown>>();
/** Raised when an answer has come, so that whoever reads one is shown again. */
const arrivals = signal(0);

/** What the server says about a finished reply, asked for once; null before it has answered, and if it refuses. */
function asked<Answer>(column: Column, index: number, key: string, ask: () => Promise<Answer>): Answer | null {
  arrivals.value;
  const exchange = column.exchange!;
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
function scored(column: Column, index: number, model: string): readonly Token[] | null {
  const { promptIds, replies } = column.exchange!;
  const ids = [...promptIds, ...replies[index]!.tokenIds];
  return asked(column, index, model, () => score(model, ids, promptIds.length, 1));
}

/** What the constraint of a reply did at each token; null without one. A thought before the answer is not constrained. */
function inspected(column: Column, index: number): readonly Position[] | null {
  const { promptIds, replies, body } = column.exchange!;
  const { response_format, structured_outputs } = body;
  const { tokenIds, reasoning, branch } = replies[index]!;
  if ((response_format === undefined && structured_outputs === undefined) || reasoning !== "" || branch !== null)
    return null;
  const question = {
    ...{ model: servedName(column), response_format, structured_outputs },
    ...{ tokens: tokenIds, prompt_token_ids: promptIds },
  };
  return asked(column, index, "constraint", async () => {
    const answer = await postJson<{ positions: Position[] }>("/structured_outputs/inspect", question);
    return answer.positions;
  });
}

/** The model to compare with: the first column's, or for the first column the second's. */
function otherModel(column: Column): string | null {
  const [first, second] = columns.value;
  const other = column === first ? second : first;
  return other === undefined || servedName(other) === servedName(column) ? null : servedName(other);
}

/** Largest difference of log-probabilities that still gets a deeper colour. */
const FULL_DIFFERENCE = 3;

export function heatOf(colour: Colour, column: Column, index: number): (token: Token, i: number) => number | null {
  if (colour === "surprise") return ({ logprob }) => surprise(logprob);
  if (colour === "legal") {
    const positions = inspected(column, index);
    return (_token, i) => (positions?.[i]?.legal_mass === undefined ? null : 1 - positions[i].legal_mass);
  }
  const other = otherModel(column);
  const theirs = other === null ? null : scored(column, index, other);
  return (token, i) => (theirs === null ? null : clamp((token.logprob - theirs[i]!.logprob) / FULL_DIFFERENCE));
}

export function notesOf(column: Column, index: number, at: number): string[] {
  const position = inspected(column, index)?.[at];
  const other = otherModel(column);
  const theirs = other === null ? undefined : scored(column, index, other)?.[at];
  return [
    ...(position === undefined ? [] : constraintNotes(position)),
    ...(theirs === undefined ? [] : [`under ${other}: ${percent(Math.exp(theirs.logprob))}`]),
  ];
}

function clamp(value: number): number {
  return Math.max(-1, Math.min(1, value));
}
