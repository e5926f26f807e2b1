// A chat is a tree of turns. A question follows an answer, or begins the chat; a set of answers is what one request brought for a
// question. Questions after the same answer, and answers to the same question, are versions of one another. A column shows one
// way through the tree: what it picked at every fork.

import type { Message } from "./message.ts";
import { asMessage, type Exchange, type Reply } from "./reply.ts";
import type { OutputKind } from "./settings.ts";

export type TurnId = string;

/** One reply of a set of answers. */
export interface Place {
  turn: TurnId;
  reply: number;
}

/** What the user said, or the results of tool calls. */
export interface Question {
  kind: "question";
  id: TurnId;
  after: Place | null;
  messages: readonly Message[];
}

export interface Answers {
  kind: "answers";
  id: TurnId;
  to: TurnId;
  exchange: Exchange;
  /** The constraint as it was when they were asked for. */
  sent: { output: OutputKind; constraint: string };
}

export type Turn = Question | Answers;
/** In the order in which they were made. */
export type Turns = ReadonlyMap<TurnId, Turn>;

export interface Column {
  /** By fork: after a place (or "" at the beginning) the question, after a question the place. */
  picks: Readonly<Record<string, string>>;
}

/** A question of a column's way, with the answer that was picked. */
export interface Round {
  question: Question;
  /** Null: nothing was asked yet. */
  answers: Answers | null;
  /** The picked one of the answers. */
  reply: number;
}

/** Short, and told apart even by two tabs that make one at the same time. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join("");
}

export function placeKey(place: Place | null): string {
  return place === null ? "" : `${place.turn}:${place.reply}`;
}

function placeIn(key: string): Place {
  const at = key.lastIndexOf(":");
  return { turn: key.slice(0, at), reply: Number(key.slice(at + 1)) };
}

/** A column goes on with the newest question where it has picked none. */
export function wayOf(turns: Turns, { questions }: Versions, { picks }: Column): Round[] {
  const rounds: Round[] = [];
  for (let after: Place | null = null; ; ) {
    const fork: string = placeKey(after);
    const picked = turns.get(picks[fork] ?? "");
    const question = picked ?? turns.get(questions.get(fork)?.at(-1) ?? "");
    if (question?.kind !== "question") return rounds;
    const key = picks[question.id];
    const place = key === undefined ? null : placeIn(key);
    const answers = place === null ? undefined : turns.get(place.turn);
    if (answers?.kind !== "answers") return [...rounds, { question, answers: null, reply: 0 }];
    const reply = Math.max(0, Math.min(place!.reply, answers.exchange.replies.length - 1));
    rounds.push({ question, answers, reply });
    after = { turn: answers.id, reply };
  }
}

/** Where the next question goes on; null: at the beginning. */
export function endOf(rounds: readonly Round[]): Place | null {
  const last = rounds.findLast(({ answers }) => answers !== null);
  return last === undefined ? null : placeOf(last);
}

export function placeOf({ answers, reply }: Round): Place {
  return { turn: answers!.id, reply };
}

export function replyOf({ answers, reply }: Round): Reply | null {
  return answers?.exchange.replies[reply] ?? null;
}

/** What a request repeats of these rounds, from `startsAt` on. A question without an answer is left out. */
export function messagesOf(rounds: readonly Round[], startsAt: TurnId | null): Message[] {
  const from = rounds.findIndex(({ question }) => question.id === startsAt);
  return rounds.slice(Math.max(0, from)).flatMap((round) => {
    const reply = replyOf(round);
    const answer = reply === null ? null : asMessage(reply);
    return answer === null ? [] : [...round.question.messages, answer];
  });
}

/** Questions at the same fork, and answers to the same question, in the order in which they were made. */
export interface Versions {
  questions: ReadonlyMap<string, readonly TurnId[]>;
  places: ReadonlyMap<TurnId, readonly Place[]>;
}

export function versionsOf(turns: Turns): Versions {
  const questions = new Map<string, TurnId[]>();
  const places = new Map<TurnId, Place[]>();
  for (const turn of turns.values()) {
    if (turn.kind === "question") listIn(questions, placeKey(turn.after)).push(turn.id);
    else listIn(places, turn.to).push(...turn.exchange.replies.map((_reply, reply) => ({ turn: turn.id, reply })));
  }
  return { questions, places };
}

function listIn<Item>(lists: Map<string, Item[]>, key: string): Item[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

/** Without a question and its answers; what followed one of them follows what was before it. */
export function without(
  turns: Turns,
  columns: readonly Column[],
  id: TurnId,
): { turns: Turns; columns: Column[]; gone: TurnId[] } {
  const gone = turns.get(id) as Question;
  const left = new Map(turns);
  const answers = [...turns.values()]
    .filter((turn) => turn.kind === "answers" && turn.to === id)
    .map((turn) => turn.id);
  for (const one of [id, ...answers]) left.delete(one);
  for (const turn of left.values()) {
    const follows = turn.kind === "question" && turn.after !== null && answers.includes(turn.after.turn);
    if (follows) left.set(turn.id, { ...turn, after: gone.after });
  }
  const key = placeKey(gone.after);
  const mended = columns.map((column) => {
    if (column.picks[key] !== id) return column;
    const { [key]: _question, [id]: place, ...picks } = column.picks;
    const next = picks[place ?? ""] ?? versionsOf(left).questions.get(key)?.at(-1);
    return { ...column, picks: next === undefined ? picks : { ...picks, [key]: next } };
  });
  return { turns: left, columns: mended, gone: [id, ...answers] };
}
