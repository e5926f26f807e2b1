// The state of the playground: the chat that is shown, its settings, and what is being written. Everything that changes the chat
// goes through `change` or `update`, so that whoever keeps it is told.
import { computed, signal } from "@preact/signals";
import { models } from "../models.ts";
import { type Chat, titleOf } from "./chat-record.ts";
import type { Message } from "./message.ts";
import { type Exchange, isRunning } from "./reply.ts";
import { isWorking } from "./running.ts";
import { DEFAULTS, type Settings } from "./settings.ts";
import { type Answers, type Column, newId, type Round, type TurnId, versionsOf, wayOf } from "./tree.ts";

export const settings = signal<Settings>(DEFAULTS);
export const chat = signal<Chat>(emptyChat());
/** What stands in the box, not sent yet. */
export const draft = signal("");
/** The question that is written anew in the box, and the draft that waits for it to be done; null: none. */
export const editing = signal<{ question: TurnId; draft: string } | null>(null);
/** Why nothing was sent; null if all is well. */
export const problem = signal<string | null>(null);
/** The seed of the newest question. */
export const lastSeed = signal<number | null>(null);

export function emptyChat(): Chat {
  return { id: newId(), title: null, at: Date.now(), turns: new Map(), columns: [], startsAt: null };
}

/** What was changed since the chat was kept last. */
export interface Changes {
  /** Sets of answers that are new or have other tokens. */
  answers: readonly TurnId[];
  gone: readonly TurnId[];
}

let tell: (changes: Changes) => void = () => {};

/** `onChange`: called after every change that is worth keeping. */
export function whenChanged(onChange: (changes: Changes) => void): void {
  tell = onChange;
}

export function change(part: Partial<Settings>): void {
  settings.value = { ...settings.value, ...part };
  tell({ answers: [], gone: [] });
}

export function update(part: Partial<Chat>, { answers = [], gone = [] }: Partial<Changes> = {}): void {
  chat.value = { ...chat.value, ...part };
  tell({ answers, gone });
}

export function write(text: string): void {
  draft.value = text;
  tell({ answers: [], gone: [] });
}

export const columnModels = computed((): readonly string[] => {
  const base = models.value[0]?.id;
  if (settings.value.models.length > 0) return settings.value.models;
  return base === undefined ? [] : [base];
});

/** One model's side of the chat. */
export interface Side {
  model: string;
  column: Column;
  rounds: readonly Round[];
}

export const versions = computed(() => versionsOf(chat.value.turns));

export const sides = computed((): readonly Side[] => {
  const { turns, columns } = chat.value;
  const forks = versions.value;
  const names = columnModels.value.length > 0 ? columnModels.value : columns.slice(0, 1).map(() => "");
  return names.map((model, i) => {
    const column = columns[i] ?? newcomer(columns[0]);
    return { model, column, rounds: wayOf(turns, forks, column) };
  });
});

/** A new column joins the conversation of the first before its newest answer. */
function newcomer(first: Column | undefined): Column {
  if (first === undefined) return { picks: {} };
  const last = wayOf(chat.value.turns, versions.value, first).at(-1)?.question.id;
  return { picks: Object.fromEntries(Object.entries(first.picks).filter(([key]) => key !== last)) };
}

/** The newest answers of a column. */
export interface Newest {
  model: string;
  turn: Answers;
  exchange: Exchange;
  /** Number of the reply that the conversation goes on with. */
  chosen: number;
}

/** By column; null before its first answer. */
export const newest = computed((): readonly (Newest | null)[] =>
  sides.value.map(({ model, rounds }) => {
    const { answers, reply } = rounds.at(-1) ?? { answers: null, reply: 0 };
    return answers === null ? null : { model, turn: answers, exchange: answers.exchange, chosen: reply };
  }),
);

export const isBusy = computed(() => {
  if (isWorking.value) return true;
  for (const turn of chat.value.turns.values()) if (turn.kind === "answers" && isRunning(turn.exchange)) return true;
  return false;
});

export const chatId = computed(() => chat.value.id);
export const title = computed(() => (hasTalked.value ? titleOf(chat.value) : "Playground"));
export const hasTalked = computed(() => chat.value.turns.size > 0);

/** True while every column's newest answers are to the same question after the same conversation, with one seed. */
export const isFairComparison = computed(() => {
  const [first, ...others] = newest.value;
  if (first === undefined || first === null || others.length === 0) return false;
  const same = ({ body }: Exchange) => {
    const { model: _model, messages: _messages, ...rest } = body;
    return JSON.stringify(rest);
  };
  const said = ({ body }: Exchange) => (body.messages ?? []) as readonly Message[];
  return others.every((other) => {
    if (other === null || same(other.exchange) !== same(first.exchange)) return false;
    const [a, b] = [said(first.exchange), said(other.exchange)];
    return a.length === b.length && a.every((message, i) => isSame(message, b[i]!));
  });
});

function isSame(a: Message, b: Message): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The name of what answered, with its step; the column's name before it has. */
export function servedName({ model, exchange }: Pick<Newest, "model" | "exchange">): string {
  return exchange.model ?? model;
}

/** Puts what a request brought into the chat, unless its turn is gone. `isOver`: it is worth keeping. */
export function put(id: TurnId, exchange: Exchange, isOver: boolean): void {
  const turn = chat.value.turns.get(id);
  if (turn?.kind !== "answers") return;
  const turns = new Map(chat.value.turns).set(id, { ...turn, exchange });
  if (isOver) update({ turns }, { answers: [id] });
  else chat.value = { ...chat.value, turns };
}

/** Another version at a fork of one column. */
export function pick(column: number, fork: string, target: string): void {
  update({ columns: picked(column, { [fork]: target }) });
}

/** The columns, with more picked in one of them. */
export function picked(column: number, picks: Record<string, string>): Column[] {
  return sides.value.map(({ column: one }, i) => (i === column ? { picks: { ...one.picks, ...picks } } : one));
}
