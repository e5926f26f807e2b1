// How training turns chats into token ids. The API implements it with the served model's tokenizer and chat template.

import type { ChatTool } from "../../text/messages.ts";
import type { HistoryMessage } from "./trajectory.ts";

/** Ids, or a promise of them: a long text is rendered and tokenised elsewhere. */
type Encoded = number[] | Promise<number[]>;

export interface ChatEncoder {
  /** Tokens of the model; its tokenizer may know fewer or more. */
  readonly vocabSize: number;
  readonly eosTokenId: number | null;
  /**
   * Ids of the rendered conversation, ending where a reply of the assistant would begin. Ids after the first
   * `maxTokens` + 1 may be missing. Throws if the template refuses the conversation.
   */
  encodePrompt(messages: readonly HistoryMessage[], tools: readonly ChatTool[] | null, maxTokens: number): Encoded;
  /** Ids of the rendered conversation without the opening of a reply. */
  encodeConversation(messages: readonly HistoryMessage[], tools: readonly ChatTool[] | null): Encoded;
  encodeText(text: string): Encoded;
  /** The text for `encodeText`, with the control tokens that a client spelt in it as text, where the server keeps them so. */
  literal(text: string): string | Promise<string>;
  /** The text of each token, for reading. A token that ends inside a character has none; the next one has it all. */
  tokenTexts(ids: readonly number[]): string[];
  /** Id of the token with these bytes or, without bytes, this text. null when it is not exactly one token. */
  idOf(token: string, bytes?: readonly number[] | null): number | null;
}
