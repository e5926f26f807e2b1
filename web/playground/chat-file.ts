// A chat in a file: JSON, with arrays of numbers as base64. Files and kept chats of earlier versions of the page are read too, and
// a bare list of messages.
import {
  type AnswersRecord,
  type ChatRecord,
  fromRecords,
  type Kept,
  toAnswersRecord,
  toRecord,
} from "./chat-record.ts";
import type { Body, Message } from "./message.ts";
import { type Exchange, emptyReply, startExchange, type ToolCall } from "./reply.ts";
import { DEFAULTS, fromQuery } from "./settings.ts";
import { TokenList } from "./token-list.ts";
import type { WireEntry } from "./tokens.ts";
import { type Answers, type Column, newId, type Place, placeKey, type Question, type Turn } from "./tree.ts";

const ARRAYS = { Int32Array, Float64Array, Uint8Array } as const;

interface ChatFile {
  object: "flywheel.chat";
  version: 2;
  chat: ChatRecord;
  answers: AnswersRecord[];
}

export function toFile(kept: Kept): string {
  const turns = [...kept.chat.turns.values()].filter((turn) => turn.kind === "answers");
  const answers = turns.map((turn) => toAnswersRecord(kept.chat.id, turn));
  const file: ChatFile = { object: "flywheel.chat", version: 2, chat: toRecord(kept), answers };
  return JSON.stringify(file, (_key, value: unknown) => (ArrayBuffer.isView(value) ? packed(value) : value));
}

/** As a chat of its own, with a new id. Throws a sentence if the text is no chat. */
export function fromFile(text: string): Kept {
  let file: unknown;
  try {
    file = JSON.parse(text, (_key, value: unknown) => unpacked(value));
  } catch {
    throw new Error(NO_CHAT);
  }
  try {
    const kept = readFile(file);
    return { ...kept, chat: { ...kept.chat, id: newId(), at: Date.now() } };
  } catch {
    throw new Error(NO_CHAT);
  }
}

const NO_CHAT = "The file is no conversation of this page.";

function readFile(file: unknown): Kept {
  if (Array.isArray(file)) return fromMessages(file as Message[]);
  const { object, version, chat, answers, columns, query, messages } = file as Partial<ChatFile & OldChat & Listed>;
  if (Array.isArray(messages)) return fromMessages(messages);
  if (object !== "flywheel.chat") throw new Error(NO_CHAT);
  if (version === 2 && chat!.columns.every(({ picks }) => typeof picks === "object"))
    return fromRecords(chat!, answers!);
  return fromOld({ columns: columns!, query: query! });
}

interface Listed {
  messages: Message[];
}

/** What earlier versions kept: what was said before as messages, and the newest question with everything. */
interface OldChat {
  query: string;
  columns: {
    model: string;
    turns: Message[];
    chosen: number;
    exchange: (Omit<Exchange, "replies"> & { replies: OldReply[] }) | null;
  }[];
}

interface OldReply {
  content: string;
  reasoning: string;
  toolCalls: ToolCall[];
  entries: WireEntry[];
  tokenIds: number[];
  finish: string | null;
  policyVersion: number | null;
  branch: { of: number; at: number } | null;
}

function fromOld({ query, columns }: OldChat): Kept {
  const { settings } = fromQuery(query);
  const tree = new Growing();
  const made = columns.map(({ model, turns, exchange, chosen }) => {
    const way = tree.way(model, turns);
    if (exchange !== null) {
      const messages = exchange.body.messages as Message[];
      const { body, state, error, model: served, promptIds, cachedTokens, startedAt } = exchange;
      const replies = exchange.replies.map((reply) => {
        const tokens = new TokenList();
        for (const entry of reply.entries) tokens.add(entry);
        const { content, reasoning, toolCalls, tokenIds, finish, policyVersion, branch } = reply;
        return { ...emptyReply(), content, reasoning, toolCalls, tokens, tokenIds, finish, policyVersion, branch };
      });
      const kept = { body, state, error, model: served, promptIds, cachedTokens, startedAt, replies };
      way.add([messages.at(-1)!], kept, chosen);
    }
    return way.column;
  });
  const models = settings.models.length > 0 ? settings.models : columns.map(({ model }) => model);
  return { ...tree.kept(made), settings: { ...settings, models } };
}

function fromMessages(messages: readonly Message[]): Kept {
  if (messages.some(({ role }) => typeof role !== "string") || messages.length === 0) throw new Error(NO_CHAT);
  const system = messages[0]!.role === "system" ? String(messages[0]!.content) : "";
  const tree = new Growing();
  const way = tree.way("", messages.slice(system === "" ? 0 : 1));
  return { ...tree.kept([way.column]), settings: { ...DEFAULTS, system } };
}

/** A tree that grows from lists of messages. Lists that begin alike share their beginning. */
class Growing {
  readonly #turns = new Map<string, Turn>();
  readonly #questions = new Map<string, Question>();

  way(model: string, messages: readonly Message[]) {
    const picks: Record<string, string> = {};
    let after: Place | null = null;
    const body: Body = { model };
    const add = (asked: readonly Message[], exchange: Exchange, chosen: number) => {
      const question = this.#question(after, asked);
      const sent = { output: "text", constraint: "" } as const;
      const answers: Answers = { kind: "answers", id: newId(), to: question.id, exchange, sent };
      this.#turns.set(answers.id, answers);
      picks[placeKey(after)] = question.id;
      after = { turn: answers.id, reply: chosen };
      picks[question.id] = placeKey(after);
    };
    let asked: Message[] = [];
    messages.forEach((message, i) => {
      if (message.role !== "assistant") {
        asked.push(message);
        return;
      }
      const said = { ...startExchange({ ...body, messages: messages.slice(0, i) }, 0), state: "done" as const };
      const content = message.content ?? "";
      add(asked, { ...said, replies: [{ ...emptyReply(), content, toolCalls: callsIn(message) }] }, 0);
      asked = [];
    });
    if (asked.length > 0) picks[placeKey(after)] = this.#question(after, asked).id;
    return { column: { picks } satisfies Column, add };
  }

  kept(columns: readonly Column[]): Kept {
    const chat = { id: "", title: null, at: 0, turns: this.#turns, columns, startsAt: null };
    return { chat, settings: DEFAULTS, draft: "", deleted: [] };
  }

  #question(after: Place | null, messages: readonly Message[]): Question {
    const text = JSON.stringify([after, messages]);
    const question = this.#questions.get(text) ?? { kind: "question", id: newId(), after, messages };
    this.#questions.set(text, question);
    this.#turns.set(question.id, question);
    return question;
  }
}

function callsIn({ tool_calls = [] }: Message): ToolCall[] {
  return tool_calls.map((call) => {
    const { name, arguments: text } = call.function as { name: string; arguments: string };
    return { id: String(call.id), name, arguments: text };
  });
}

function packed(array: ArrayBufferView): { array: string; base64: string } {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE) text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return { array: array.constructor.name, base64: btoa(text) };
}

/** As many arguments as a call may have, with room to spare. */
const PIECE = 8_192;

function unpacked(value: unknown): unknown {
  const { array, base64 } = (value ?? {}) as { array?: keyof typeof ARRAYS; base64?: string };
  if (array === undefined || base64 === undefined || !Object.hasOwn(ARRAYS, array)) return value;
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  return new ARRAYS[array](bytes.buffer);
}
