// Prepares example conversations for supervised fine-tuning. The turns of the assistant are trained, including their
// end; everything else is context.

import { type GiveWay, givingWay } from "../../pacing/turns.ts";
import type { ChatTool } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import type { SftConfig } from "../config.ts";
import { Prompts } from "./prompts.ts";
import {
  type LengthLimit,
  type LengthLimits,
  lengthLimit,
  partlyTooLong,
  SequenceBuilder,
  startsWith,
  type TokenSequence,
  tokenCounts,
} from "./token-sequence.ts";
import { checkRange, endsInThought, TokenMismatchError, thoughtAndAnswer, thoughtAtEnd } from "./tokenise.ts";
import { type ChatEncoder, type HistoryMessage, refusalText } from "./trajectory.ts";

export interface SftExample {
  messages: readonly HistoryMessage[];
  tools: readonly ChatTool[] | null;
}

export interface ExampleReport {
  example: number;
  status: "trained" | "too_long" | "no_assistant_turn" | "unrenderable";
  reason: string | null;
  tokens: number;
  trainableTokens: number;
}

export interface PreparedSft {
  /** In the order of the examples. `example`: index in the submitted data. */
  sequences: (TokenSequence & { example: number })[];
  report: ExampleReport[];
  /** Sequences of each example of the report. One that is too long ends just past the limit. */
  tokenised: TokenSequence[][];
}

export async function prepareSft(
  examples: AsyncIterable<SftExample> | Iterable<SftExample>,
  encoder: ChatEncoder,
  config: SftConfig,
  limits: LengthLimits,
  signal?: AbortSignal,
): Promise<PreparedSft> {
  const limit = lengthLimit(limits.maxSequenceLength, limits);
  const prepared: PreparedSft = { sequences: [], report: [], tokenised: [] };
  const giveWay = givingWay(signal);
  for await (const example of examples) {
    const index = prepared.report.length;
    const { sequences, refusal } = await attempt(() =>
      tokeniseExample(example, encoder, config.assistantTurns, limit.tokens, giveWay),
    );
    const fitting = sequences.filter(({ ids }) => ids.length <= limit.tokens);
    prepared.sequences.push(...fitting.map((sequence) => ({ ...sequence, example: index })));
    prepared.report.push(reportOf(index, sequences, fitting, limit, refusal));
    prepared.tokenised.push(fitting.length > 0 ? fitting : sequences);
  }
  return prepared;
}

/** An example that cannot be tokenised is left out; the others are not affected. */
async function attempt(
  tokenise: () => Promise<TokenSequence[]>,
): Promise<{ sequences: TokenSequence[]; refusal: string | null }> {
  try {
    return { sequences: await tokenise(), refusal: null };
  } catch (error) {
    return { sequences: [], refusal: refusalOf(error) };
  }
}

function refusalOf(error: unknown): string {
  const element = (index: number) => `messages[${index}]`;
  if (error instanceof PromptError) return refusalText(error, { elements: "messages", element });
  if (error instanceof TokenMismatchError) return `${element(error.element)}: ${error.message}`;
  throw error;
}

/** A sequence that is too long may end past the limit, without its last turns. */
async function tokeniseExample(
  { messages, tools }: SftExample,
  encoder: ChatEncoder,
  turns: "all" | "last",
  limit: number,
  giveWay: GiveWay,
): Promise<TokenSequence[]> {
  const builder = new SequenceBuilder();
  const replies = messages.flatMap(({ role }, i) => (role === "assistant" ? [i] : []));
  const elements = turns === "last" ? replies.slice(-1) : replies;
  const prompts = new Prompts({ messages, tools, elements, encoder, limit, giveWay });
  for (const element of elements) {
    const prompt = await prompts.before(element);
    checkRange(prompt, element, encoder);
    if (prompt.length > limit) {
      builder.tooLong(prompt);
      continue;
    }
    await giveWay();
    const { kept, reply } = await replyBehind(prompt, messages.slice(0, element + 1), tools, encoder);
    checkRange(reply, element, encoder);
    builder.turn(kept, reply, null);
  }
  return builder.finish();
}

/**
 * Splits a conversation into the prompt and the reply to train, up to the end-of-sequence token. Usually the rendered
 * conversation continues the prompt. Some templates open a reply in another way than they write a finished one:
 * - A plain reply: its text follows the prompt.
 * - A reply with tool calls or a thought: the rendered conversation is kept from where it first differs from the prompt.
 *   Its thought replaces the empty one of the prompt.
 * - The prompt leaves a thought open, or the template drops past thoughts: thought and answer are written as models do.
 */
async function replyBehind(
  prompt: readonly number[],
  messages: readonly HistoryMessage[],
  tools: readonly ChatTool[] | null,
  encoder: ChatEncoder,
): Promise<{ kept: readonly number[]; reply: number[] }> {
  const message = messages.at(-1)!;
  const whole = await encoder.encodeConversation(messages, tools);
  const end = encoder.eosTokenId;
  const hasCalls = message.toolCalls !== undefined;
  const index = messages.length - 1;
  const written = async (kept: readonly number[], text: string) => {
    const ids = await encoder.encodeText(text);
    return { kept, reply: end === null ? ids : [...ids, end] };
  };
  if (!hasCalls && !startsWith(whole, prompt)) {
    const said = thoughtAndAnswer(message, index);
    const [thought, answer] = [await encoder.literal(said.thought), await encoder.literal(said.answer)];
    if (endsInThought(prompt, encoder)) return written(prompt, `${thought}\n</think>\n\n${answer}`);
    if (thought === "") return written(prompt, answer);
    const think = encoder.idOf("<think>");
    const before = prompt.slice(0, thoughtAtEnd(prompt, encoder));
    if (think !== null && !whole.slice(before.length).includes(think)) {
      return written(before, `<think>\n${thought}\n</think>\n\n${answer}`);
    }
  }
  const differs = prompt.findIndex((id, i) => id !== whole[i]);
  const kept = differs < 0 ? prompt : prompt.slice(0, Math.min(differs, thoughtAtEnd(prompt, encoder)));
  const reply = whole.slice(kept.length);
  const ends = end === null ? -1 : reply.lastIndexOf(end);
  return { kept, reply: ends < 0 ? reply : reply.slice(0, ends + 1) };
}

function reportOf(
  example: number,
  all: TokenSequence[],
  fitting: TokenSequence[],
  limit: LengthLimit,
  refusal: string | null,
): ExampleReport {
  const { tokens, trainableTokens } = tokenCounts(fitting.length > 0 ? fitting : all);
  const counts = { example, tokens, trainableTokens };
  if (refusal !== null) return { ...counts, status: "unrenderable", reason: refusal };
  if (all.length === 0) {
    return { ...counts, status: "no_assistant_turn", reason: "it has no assistant message to learn" };
  }
  if (fitting.length === 0) return { ...counts, status: "too_long", reason: limit.exceeded };
  const reason = fitting.length < all.length ? partlyTooLong(all.length, fitting.length, limit) : null;
  return { ...counts, status: "trained", reason };
}
