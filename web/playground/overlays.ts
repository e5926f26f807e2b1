// What colours the tokens of a reply, and what the panel adds about a token: surprise, the difference to another column's
// model, and how much probability a constraint left. The last two need a second score, which is asked for once and kept.
import { signal } from "@preact/signals";
import { percent } from "../format.ts";
import { score } from "./scoring.ts";
import type { Colour } from "./settings.ts";
import { type Column, columns, servedName } from "./state.ts";
import { surprise, type Token } from "./tokens.ts";

type Scores = readonly Token[] | "asked" | "failed";

/** By the token arrays that were scored and the name of the model. Arrays are never reused. */
const kept = new WeakMap<readonly Token[], Map<string, Scores>>();
/** Raised when a score has come, so that whoever reads one is shown again. */
const arrivals = signal(0);

/** The tokens of a reply under a model, without a constraint; null while they are on their way. */
function scored(column: Column, index: number, model: string): readonly Token[] | null {
  arrivals.value;
  const exchange = column.exchange!;
  const { tokens, tokenIds } = exchange.replies[index]!;
  const isWhole = tokens.length > 0 && (exchange.state === "done" || exchange.state === "stopped");
  if (!isWhole) return null;
  const models = kept.get(tokens) ?? new Map<string, Scores>();
  kept.set(tokens, models);
  const found = models.get(model);
  if (found === undefined) {
    models.set(model, "asked");
    const all = [...exchange.promptIds, ...tokenIds];
    void score(model, all, exchange.promptIds.length, 1)
      .catch(() => "failed" as const)
      .then((result) => {
        models.set(model, result);
        arrivals.value += 1;
      });
  }
  return typeof found === "object" ? found : null;
}

/** The model to compare with: the first column's, or for the first column the second's. */
function otherModel(column: Column): string | null {
  const [first, second] = columns.value;
  const other = column === first ? second : first;
  return other === undefined || servedName(other) === servedName(column) ? null : servedName(other);
}

function isConstrained(column: Column): boolean {
  const { response_format, structured_outputs } = column.exchange!.body;
  return response_format !== undefined || structured_outputs !== undefined;
}

/** Largest difference of log-probabilities that still gets a deeper colour. */
const FULL_DIFFERENCE = 3;

export function heatOf(colour: Colour, column: Column, index: number): (token: Token, i: number) => number | null {
  if (colour === "surprise") return ({ logprob }) => surprise(logprob);
  if (colour === "legal") {
    const free = isConstrained(column) ? scored(column, index, servedName(column)) : null;
    return (token, i) => (free === null ? null : 1 - legalMass(token, free[i]));
  }
  const other = otherModel(column);
  const theirs = other === null ? null : scored(column, index, other);
  return (token, i) => (theirs === null ? null : clamp((token.logprob - theirs[i]!.logprob) / FULL_DIFFERENCE));
}

/** The share of probability that the constraint left: exp(ℓ free − ℓ constrained), at most 1 but for rounding. */
export function legalMass(constrained: Pick<Token, "logprob">, free: Pick<Token, "logprob"> | undefined): number {
  return free === undefined ? 1 : Math.min(1, Math.exp(free.logprob - constrained.logprob));
}

export function notesOf(column: Column, index: number, at: number): string[] {
  const token = column.exchange!.replies[index]!.tokens[at]!;
  const notes: string[] = [];
  if (isConstrained(column)) {
    const free = scored(column, index, servedName(column))?.[at];
    if (free !== undefined) {
      const wanted = free.top[0];
      notes.push(`the constraint left ${percent(legalMass(token, free))} of the model's probability`);
      if (wanted !== undefined && wanted.id !== token.id && wanted.logprob > free.logprob) {
        notes.push(`without it: ${JSON.stringify(wanted.text)} ${percent(Math.exp(wanted.logprob))}`);
      }
    }
  }
  const other = otherModel(column);
  const theirs = other === null ? undefined : scored(column, index, other)?.[at];
  if (theirs !== undefined) notes.push(`under ${other}: ${percent(Math.exp(theirs.logprob))}`);
  return notes;
}

function clamp(value: number): number {
  return Math.max(-1, Math.min(1, value));
}
