// Turns a history into token sequences whose mask covers exactly the sampled tokens. The tokens of a choice come from,
// in this order: its ids, ids written as "token_id:N", token texts, and last its message text, without
// log-probabilities.

import type { GiveWay } from "../../pacing/turns.ts";
import { createReplyParser } from "../../text/create-reply-parser.ts";
import { joinedText } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { reasoningStyle } from "../../text/reasoning.ts";
import { Prompts } from "./prompts.ts";
import { SequenceBuilder, type TokenSequence } from "./token-sequence.ts";
import {
  type ChatEncoder,
  type History,
  type HistoryItem,
  type HistoryMessage,
  messageOf,
  type SampledChoice,
} from "./trajectory.ts";

// Some templates begin a reply with a thought, either empty or left open. A reply that has its own thought was not
// sampled after an empty one, so its prompt ends before the empty thought.

/** The longest empty thought at the end of a prompt, in tokens. */
const EMPTY_THOUGHT = 4;

/** Index where the thought at the end of a prompt begins, open or closed; the prompt's length when there is none. */
export function thoughtAtEnd(prompt: readonly number[], encoder: ChatEncoder): number {
  const think = encoder.idOf("<think>");
  const opened = think === null ? -1 : prompt.lastIndexOf(think);
  return opened >= 0 && opened >= prompt.length - EMPTY_THOUGHT ? opened : prompt.length;
}

/** Whether the prompt leaves a thought open. */
export function endsInThought(prompt: readonly number[], encoder: ChatEncoder): boolean {
  const opened = thoughtAtEnd(prompt, encoder);
  const end = encoder.idOf("</think>");
  return opened < prompt.length && (end === null || prompt.indexOf(end, opened) < 0);
}

// The text of one message, joined as for rendering, and the thought in it. So training from a message's text uses exactly
// the text that the template would get.

const style = reasoningStyle("think", null)!;

/** Throws PromptError where chat would refuse the message. `index`: in its conversation, for the path of the error. */
function textOf(message: HistoryMessage, index: number): string {
  checkReadable(message, index);
  return joinedText(message);
}

/** Splits a reply into its thought, from a field or the beginning of its text ("" without one), and the rest. */
export function thoughtAndAnswer(message: HistoryMessage, index: number): { thought: string; answer: string } {
  const text = textOf(message, index);
  if ((message.reasoning ?? "") !== "") return { thought: message.reasoning!, answer: text };
  const parser = createReplyParser({ reasoning: { style, state: "optional" }, tools: null });
  const parts = [...parser.push(text), ...parser.finish()];
  const join = (wanted: "reasoning" | "content") =>
    parts.map((part) => (part.kind === wanted ? part.text : "")).join("");
  return { thought: join("reasoning"), answer: join("content") };
}

/** A reply for `encodeText`. The marks of the thought that it begins with are the model's own. */
async function literalReply(text: string, { literal }: Pick<ChatEncoder, "literal">): Promise<string> {
  const opened = text.indexOf(style.start) + style.start.length;
  const closed = text.indexOf(style.end, opened);
  if (!text.trimStart().startsWith(style.start) || closed < 0) return literal(text);
  const [thought, answer] = [text.slice(opened, closed), text.slice(closed + style.end.length)];
  return text.slice(0, opened) + (await literal(thought)) + style.end + (await literal(answer));
}

export function checkReadable({ refusal }: HistoryMessage, index: number): void {
  if (refusal) throw new PromptError("invalid_message", `messages.${index}${refusal.field}`, refusal.reason);
}

export interface TokenisedHistory {
  /** A sequence that is too long may end past the limit, without its last turns. */
  sequences: TokenSequence[];
  /** Number of choices that had to be tokenised again from their text. */
  retokenised: number;
}

/**
 * The tokens of a choice cannot be trained. If `corrupt`, the record contradicts itself and the whole job cannot be
 * trusted; otherwise only this trajectory is left out.
 */
export class TokenMismatchError extends Error {
  /** Index in the history. */
  readonly element: number;
  readonly corrupt: boolean;

  constructor(element: number, message: string, corrupt = false) {
    super(message);
    this.name = "TokenMismatchError";
    this.element = element;
    this.corrupt = corrupt;
  }
}

export interface TokeniseOptions {
  /** Also trains choices and assistant messages without log-probabilities, with a ratio of 1. */
  allowWithoutLogprobs: boolean;
  /** Longest sequence that can be trained, in tokens. */
  maxTokens: number;
  giveWay: GiveWay;
}

/** Returns no sequences when nothing in the history is trainable. Items after the last trainable one are left out. */
export async function tokeniseHistory(
  history: History,
  encoder: ChatEncoder,
  options: TokeniseOptions,
): Promise<TokenisedHistory> {
  const builder = new SequenceBuilder();
  // an empty thought may still be removed from the end of a prompt
  const limit = options.maxTokens + EMPTY_THOUGHT;
  const prompts = promptsOf(history, encoder, limit, options);
  let retokenised = 0;
  for (const [element, item] of history.items.entries()) {
    if (!isTrainable(item, history, options)) continue;
    await options.giveWay();
    const reply = await sampledTokens(item, element, encoder);
    if (reply.retokenised) retokenised++;
    if (reply.ids.length === 0) continue;
    const given = promptIds(item);
    const prompt = given ?? (await prompts.before(element));
    checkRange(prompt, element, encoder);
    checkRange(reply.ids, element, encoder);
    if (given) builder.turn(given, reply.ids, reply.logprobs);
    else if (prompt.length > limit) builder.tooLong(prompt);
    else builder.turn(withoutEmptyThought(prompt, reply.ids, encoder), reply.ids, reply.logprobs);
  }
  return { sequences: builder.finish(), retokenised };
}

function isTrainable(item: HistoryItem, { requestAt }: History, { allowWithoutLogprobs }: TokeniseOptions): boolean {
  if ("choice" in item) return item.choice.logprobs !== null || allowWithoutLogprobs;
  return allowWithoutLogprobs && requestAt === undefined && item.message.role === "assistant";
}

function promptsOf(history: History, encoder: ChatEncoder, limit: number, options: TokeniseOptions): Prompts {
  const { items, tools } = history;
  const isRendered = (item: HistoryItem) => isTrainable(item, history, options) && promptIds(item) === null;
  const elements = items.flatMap((item, element) => (isRendered(item) ? [element] : []));
  return new Prompts({ messages: items.map(messageOf), tools, elements, encoder, limit, giveWay: options.giveWay });
}

function promptIds(item: HistoryItem): readonly number[] | null {
  return "choice" in item ? item.choice.promptTokenIds : null;
}

interface SampledTokens {
  ids: readonly number[];
  logprobs: readonly number[] | null;
  retokenised: boolean;
}

async function sampledTokens(item: HistoryItem, element: number, encoder: ChatEncoder): Promise<SampledTokens> {
  if ("message" in item) return fromText(item.message, element, encoder, false);
  const { choice } = item;
  const ids = choice.tokenIds ?? spelledIds(choice.tokens) ?? lookedUpIds(choice, encoder);
  if (ids === null) return fromText(choice.message, element, encoder, choice.logprobs !== null);
  if (choice.logprobs !== null && choice.logprobs.length !== ids.length) {
    throw new TokenMismatchError(
      element,
      `${choice.logprobs.length} log-probabilities for ${ids.length} tokens; send one per sampled token`,
      true,
    );
  }
  return { ids, logprobs: choice.logprobs, retokenised: false };
}

/** The last resort: the text, without an end-of-turn token and without the log-probabilities of other tokens. */
async function fromText(
  message: HistoryMessage,
  element: number,
  encoder: ChatEncoder,
  retokenised: boolean,
): Promise<SampledTokens> {
  if (message.toolCalls !== undefined) {
    throw new TokenMismatchError(element, "a reply with tool calls can only be trained from its token ids");
  }
  const text = await literalReply(textOf(message, element), encoder);
  return { ids: await encoder.encodeText(text), logprobs: null, retokenised };
}

/** Ids of "token_id:N" entries; null unless every entry has that form. */
function spelledIds(tokens: readonly string[] | null): number[] | null {
  if (tokens === null) return null;
  const ids: number[] = [];
  for (const token of tokens) {
    const match = /^token_id:(\d+)$/.exec(token);
    if (!match) return null;
    ids.push(Number(match[1]));
  }
  return ids;
}

/**
 * Returns null when an entry is not a single token. At the end, an empty text is the end-of-sequence token. Elsewhere
 * it is a token with only part of a character.
 */
function lookedUpIds({ tokens, bytes }: SampledChoice, encoder: ChatEncoder): number[] | null {
  if (tokens === null) return null;
  const ids: number[] = [];
  for (const [i, token] of tokens.entries()) {
    const own = bytes?.[i] ?? [];
    const isEnd = token === "" && own.length === 0 && i === tokens.length - 1;
    const id = isEnd ? encoder.eosTokenId : encoder.idOf(token, own);
    if (id === null) return null;
    ids.push(id);
  }
  return ids;
}

/** A reply that opens its own thought was not sampled after the empty one that some templates add. */
function withoutEmptyThought(
  prompt: readonly number[],
  ids: readonly number[],
  encoder: ChatEncoder,
): readonly number[] {
  const think = encoder.idOf("<think>");
  return think !== null && ids[0] === think ? prompt.slice(0, thoughtAtEnd(prompt, encoder)) : prompt;
}

/** Throws if the model does not have one of the ids. */
export function checkRange(ids: readonly number[], element: number, { vocabSize }: ChatEncoder): void {
  for (const id of ids) {
    if (id < 0 || id >= vocabSize) {
      throw new TokenMismatchError(element, `token id ${id} is outside the vocabulary (0 to ${vocabSize - 1})`);
    }
  }
}
