// Encodes training conversations with the served model's templates and tokenizer. Requests use the same ones, so a
// conversation becomes the tokens that the model really saw.

import type { ChatTool } from "../../text/messages.ts";
import { encodeChat } from "../../text/prompt.ts";
import { PromptError } from "../../text/prompt-error.ts";
import type { TextModel } from "../../text/text-model.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { decodeUtf8, encodeUtf8 } from "../../text/utf8.ts";
import { checkReadable } from "../../training/data/tokenise.ts";
import type { ChatEncoder, HistoryMessage } from "../../training/data/trajectory.ts";

/** Takes turns with the requests of clients. */
const TRAINING = "training";

/** `vocabSize` is the model's; the tokenizer's may differ. */
export function chatEncoder(text: TextModel, vocabSize: number): ChatEncoder {
  const { tokenizer } = text;
  const encode = async (
    messages: readonly HistoryMessage[],
    tools: readonly ChatTool[] | null,
    addGenerationPrompt: boolean,
    maxTokens?: number,
  ) => {
    messages.forEach(checkReadable);
    return encodeChat(text, { messages, tools, addGenerationPrompt, client: TRAINING }, maxTokens);
  };
  return {
    vocabSize,
    eosTokenId: tokenizer.eosTokenId,
    encodePrompt: (messages, tools, maxTokens) =>
      messages.length === 0 ? opening(text, tools) : encode(messages, tools, true, maxTokens),
    encodeConversation: (messages, tools) => encode(messages, tools, false),
    encodeText: (content) => text.encode(content, { addSpecialTokens: false, hasMarks: text.hasMarks }, TRAINING),
    literal: (content) => text.literalText(content),
    tokenTexts: (ids) => {
      const walk = new TokenTextWalk(tokenizer);
      return ids.map((id) => walk.advance(id).token);
    },
    idOf: (token, bytes) => tokenOf(tokenizer, token, bytes ?? null),
  };
}

/**
 * The prompt of a conversation that begins with a reply. Templates need at least one message, so this renders two
 * conversations with different replies and takes their common prefix. Empty if the template refuses them.
 */
async function opening(text: TextModel, tools: readonly ChatTool[] | null): Promise<number[]> {
  try {
    const finished = (reply: string) =>
      encodeChat(text, { messages: [{ role: "assistant", texts: [reply] }], tools, addGenerationPrompt: false });
    const [one, other] = [await finished("a"), await finished("b")];
    const length = one.findIndex((id, i) => id !== other[i]);
    return one.slice(0, Math.max(0, length));
  } catch (error) {
    if (error instanceof PromptError) return [];
    throw error;
  }
}

/** Servers write this for an incomplete character. */
const LOST = "\uFFFD";

/**
 * The token of a log-probability entry, found by its bytes. Without bytes it is the token that decodes to the text or,
 * failing that, the token that the vocabulary spells this way ("Ġthe").
 */
function tokenOf(tokenizer: Tokenizer, token: string, bytes: readonly number[] | null): number | null {
  const own = encodeUtf8(token);
  if (bytes !== null && bytes.length > 0) {
    // some servers derive the bytes from the text after losing the character
    const repeated = token.includes(LOST) && Buffer.compare(Uint8Array.from(bytes), own) === 0;
    return repeated ? null : tokenizer.idOfBytes(bytes);
  }
  if (token.includes(LOST)) return null;
  return tokenizer.idOfBytes(own) ?? spelled(tokenizer, token);
}

/** Only tokens that are text: an "é" that spells one byte looks the same as the letter. */
function spelled(tokenizer: Tokenizer, token: string): number | null {
  const id = tokenizer.idOf(token);
  const isText = id !== null && (tokenizer.isSpecial(id) || !decodeUtf8(tokenizer.bytes(id)).includes(LOST));
  return isText ? id : null;
}
