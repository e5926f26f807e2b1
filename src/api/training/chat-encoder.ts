// The served model's text side as training wants it: the same templates and tokenizer as requests go through, so that a
// conversation becomes the tokens the model was really given.

import { encodeChat } from "../../text/prompt.ts";
import { PromptError } from "../../text/prompt-error.ts";
import type { TextModel } from "../../text/text-model.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { decodeUtf8, encodeUtf8 } from "../../text/utf8.ts";
import type { ChatEncoder } from "../../training/data/chat-encoder.ts";

/** `vocabSize`: of the model. */
export function chatEncoder(text: TextModel, vocabSize: number): ChatEncoder {
  const { tokenizer } = text;
  const encode = (
    messages: readonly unknown[],
    tools: readonly unknown[] | null,
    addGenerationPrompt: boolean,
    maxTokens?: number,
  ) => encodeChat(text, { messages, tools, addGenerationPrompt }, maxTokens);
  return {
    vocabSize,
    eosTokenId: tokenizer.eosTokenId,
    encodePrompt: (messages, tools, maxTokens) =>
      messages.length === 0 ? opening(text, tools) : encode(messages, tools, true, maxTokens),
    encodeConversation: (messages, tools) => encode(messages, tools, false),
    encodeText: (content) => tokenizer.encode(content, { addSpecialTokens: false }),
    idOf: (token, bytes) => tokenOf(tokenizer, token, bytes ?? null),
  };
}

/**
 * The prompt of a conversation that begins with a reply. A template wants at least one message: the prompt is what two
 * conversations with different replies have in common. Nothing where the template refuses such a conversation.
 */
function opening(text: TextModel, tools: readonly unknown[] | null): number[] {
  try {
    const [one, other] = ["a", "b"].map((content) =>
      encodeChat(text, { messages: [{ role: "assistant", content }], tools, addGenerationPrompt: false }),
    ) as [number[], number[]];
    const length = one.findIndex((id, i) => id !== other[i]);
    return one.slice(0, Math.max(0, length));
  } catch (error) {
    if (error instanceof PromptError) return [];
    throw error;
  }
}

/** What servers write for bytes that are no character of their own. */
const LOST = "\uFFFD";

/**
 * The token behind an entry of log-probabilities. Its bytes decide. Without them its text is what the token decodes to,
 * or, if no token does, the vocabulary's own spelling ("Ġthe").
 */
function tokenOf(tokenizer: Tokenizer, token: string, bytes: readonly number[] | null): number | null {
  const own = encodeUtf8(token);
  if (bytes !== null && bytes.length > 0) {
    // some servers make the bytes from the text, which is too late
    const repeated = token.includes(LOST) && Buffer.compare(Uint8Array.from(bytes), own) === 0;
    return repeated ? null : tokenizer.idOfBytes(bytes);
  }
  if (token.includes(LOST)) return null;
  return tokenizer.idOfBytes(own) ?? spelled(tokenizer, token);
}

/** Of text only: the "é" that spells one byte is told from the letter by nothing. */
function spelled(tokenizer: Tokenizer, token: string): number | null {
  const id = tokenizer.idOf(token);
  const isText = id !== null && (tokenizer.isSpecial(id) || !decodeUtf8(tokenizer.bytes(id)).includes(LOST));
  return isText ? id : null;
}
