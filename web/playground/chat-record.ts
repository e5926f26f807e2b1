// A chat as the browser's database keeps it, and as a file carries it. Its turns and all it says are one record; tokens are
// beside it, one record per set of answers, so that a word more in the box does not write them again. Messages are kept once and
// named by requests, because every request repeats all that was said before.

import type { Body, Message } from "./message.ts";
import type { Exchange, Reply } from "./reply.ts";
import { DEFAULTS, type Settings } from "./settings.ts";
import { type PackedTokens, TokenList } from "./token-list.ts";
import { type Answers, type Column, newId, type Question, type Turn, type TurnId, type Turns } from "./tree.ts";

export interface Chat {
  id: string;
  /** Null: what was asked first. */
  title: string | null;
  /** When it changed last, in milliseconds since 1970. */
  at: number;
  turns: Turns;
  columns: readonly Column[];
  /** What is before this question is not sent any more; null: all is sent. */
  startsAt: TurnId | null;
}

/** What the list of chats shows and searches. */
export interface Head {
  id: string;
  title: string;
  at: number;
  said: string;
}

type StoredQuestion = Omit<Question, "messages"> & { messages: readonly string[] };
type StoredTurn = StoredQuestion | { kind: "answers"; id: TurnId; to: TurnId };

export interface ChatRecord {
  id: string;
  title: string | null;
  at: number;
  draft: string;
  settings: Settings;
  turns: readonly StoredTurn[];
  columns: readonly Column[];
  startsAt: TurnId | null;
  /** By their keys. */
  messages: Readonly<Record<string, Message>>;
  /** What was deleted: another tab that still has it must not bring it back. */
  deleted: readonly TurnId[];
}

export interface AnswersRecord {
  chat: string;
  id: TurnId;
  sent: Answers["sent"];
  /** The request without its messages, and their keys. */
  body: Body;
  messages: readonly string[];
  exchange: Omit<Exchange, "body" | "replies">;
  replies: readonly (Omit<Reply, "tokens" | "tokenIds"> & { tokens: PackedTokens; tokenIds: Int32Array })[];
}

const LONGEST_TITLE = 60;
/** As much of what was asked as can be searched. */
const MOST_SEARCHED = 20_000;

export function headOf({ chat: { id, title, at, turns }, draft }: Pick<Kept, "chat" | "draft">): Head {
  const said = saidIn(turns);
  return {
    id,
    at,
    title: title ?? titleFrom(said === "" ? draft : said),
    said: (said || draft).slice(0, MOST_SEARCHED),
  };
}

export function titleOf({ title, turns }: Pick<Chat, "title" | "turns">): string {
  return title ?? titleFrom(saidIn(turns));
}

function saidIn(turns: Turns): string {
  const questions = [...turns.values()].filter((turn) => turn.kind === "question");
  return questions.flatMap(({ messages }) => messages.map(({ content }) => content ?? "")).join("\n");
}

function titleFrom(said: string): string {
  const line = said.trim().split("\n")[0]!.trim();
  if (line === "") return "New chat";
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1).trimEnd()}…`;
}

/** Keys of messages, the same for the same object. */
const keys = new WeakMap<Message, string>();

function keyOf(message: Message): string {
  const key = keys.get(message) ?? newId();
  keys.set(message, key);
  return key;
}

export interface Kept {
  chat: Chat;
  settings: Settings;
  draft: string;
  deleted: readonly TurnId[];
}

export function toRecord({ chat, settings, draft, deleted }: Kept): ChatRecord {
  const messages: Record<string, Message> = {};
  const noted = (list: readonly Message[]) =>
    list.map((message) => {
      const key = keyOf(message);
      messages[key] = message;
      return key;
    });
  const turns = [...chat.turns.values()].map((turn): StoredTurn => {
    if (turn.kind === "question") return { ...turn, messages: noted(turn.messages) };
    noted(messagesIn(turn));
    return { kind: "answers", id: turn.id, to: turn.to };
  });
  const { id, title, at, columns, startsAt } = chat;
  return { ...{ id, title, at, draft, settings, turns, columns, startsAt, messages }, deleted };
}

export function toAnswersRecord(chat: string, { id, sent, exchange }: Answers): AnswersRecord {
  const { body, replies, ...rest } = exchange;
  const { messages: _messages, ...fields } = body;
  return {
    ...{ chat, id, sent, body: fields, messages: messagesIn({ exchange }).map(keyOf) },
    exchange: { ...rest, promptIds: Int32Array.from(rest.promptIds) },
    replies: replies.map((reply) => ({
      ...{ ...reply, tokens: reply.tokens.pack(), tokenIds: Int32Array.from(reply.tokenIds) },
    })),
  };
}

/** Throws if the parts do not fit together. Turns without a record, or whose parent is gone, are left out. */
export function fromRecords(record: ChatRecord, answers: readonly AnswersRecord[]): Kept {
  const pool = new Map(Object.entries(record.messages));
  for (const [key, message] of pool) keys.set(message, key);
  const found = (names: readonly string[]) => names.flatMap((name) => pool.get(name) ?? []);
  const stored = new Map(answers.map((one) => [one.id, one]));
  const turns = new Map<TurnId, Turn>();
  for (const turn of record.turns) {
    const one = stored.get(turn.id);
    if (turn.kind === "question") {
      turns.set(turn.id, { ...turn, messages: found(turn.messages) });
    } else if (one !== undefined) {
      const body = { ...one.body, messages: found(one.messages) };
      const replies = one.replies.map((reply) => ({
        ...{ ...reply, tokens: TokenList.from(reply.tokens), tokenIds: Array.from(reply.tokenIds) },
      }));
      const exchange = { ...one.exchange, body, replies, state: settled(one.exchange.state) };
      turns.set(turn.id, { kind: "answers", id: turn.id, to: turn.to, sent: one.sent, exchange });
    }
  }
  const { id, title, at, columns, startsAt, draft, deleted } = record;
  const settings = { ...DEFAULTS, ...record.settings };
  return { chat: { id, title, at, turns, columns, startsAt }, settings, draft, deleted };
}

function messagesIn({ exchange }: Pick<Answers, "exchange">): readonly Message[] {
  return (exchange.body.messages ?? []) as readonly Message[];
}

/** What was running when the page was left has stopped. */
function settled(state: Exchange["state"]): Exchange["state"] {
  return ["waiting", "streaming", "lost"].includes(state) ? "stopped" : state;
}

/** What two tabs have made of one chat: all turns of both. Of what only one can be, `mine` holds. */
export function merged(mine: ChatRecord, theirs: ChatRecord): ChatRecord {
  const deleted = [...new Set([...theirs.deleted, ...mine.deleted])];
  const turns = new Map([...theirs.turns, ...mine.turns].map((turn) => [turn.id, turn]));
  for (const id of deleted) turns.delete(id);
  const isThere = ([, target]: [string, string]) => turns.has(target.replace(/:\d+$/, ""));
  const columns = mine.columns.map((column, i) => {
    const both = [theirs.columns[i]?.picks ?? {}, column.picks];
    return { ...column, picks: Object.fromEntries(both.flatMap((picks) => Object.entries(picks).filter(isThere))) };
  });
  const messages = { ...theirs.messages, ...mine.messages };
  return { ...mine, turns: [...turns.values()], columns, messages, deleted };
}
