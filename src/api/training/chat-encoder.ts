// The served model's text side as training wants it: the same templates and tokenizer as requests go through, so that a
// conversation becomes the tokens the model was really given.

import { encodeChat } from "../../text/prompt.ts";
import type { TextModel } from "../../text/text-model.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { ChatEncoder } from "../../training/tokenise.ts";

export function chatEncoder(text: TextModel): ChatEncoder {
  const { tokenizer } = text;
  const encode = (
    messages: readonly unknown[],
    tools: readonly unknown[] | null,
    addGenerationPrompt: boolean,
    maxTokens?: number,
  ) =>
    // a template wants at least one message; without any, a reply begins the conversation
    messages.length === 0 ? [] : encodeChat(text, { messages, tools, addGenerationPrompt }, maxTokens);
  return {
    vocabSize: tokenizer.vocabSize,
    eosTokenId: tokenizer.eosTokenId,
    encodePrompt: (messages, tools, maxTokens) => encode(messages, tools, true, maxTokens),
    encodeConversation: (messages, tools) => encode(messages, tools, false),
    encodeText: (content) => tokenizer.encode(content, { addSpecialTokens: false }),
    idOf: (token) => tokenizer.idOf(token) ?? decodedId(tokenizer, token),
  };
}

/** The token that decodes to this text, as servers write tokens of log-probabilities. */
function decodedId(tokenizer: Tokenizer, token: string): number | null {
  const ids = tokenizer.encode(token, { addSpecialTokens: false });
  const [id] = ids;
  return ids.length === 1 && tokenizer.decode([id!], { skipSpecialTokens: false }) === token ? id! : null;
}
