// How training turns chats into token ids. The API implements it with the served model's tokenizer and chat template.

import type { ChatTool } from "../../text/messages.ts";
import type { HistoryMessage } from "./trajectory.ts";

export interface ChatEncoder {
  /** Tokens the model has; its tokenizer may know fewer or more. */
  readonly vocabSize: number;
  readonly eosTokenId: number | null;
  /**
   * Ids of the rendered conversation, ending where an assistant reply would begin. Throws if the template refuses it. Those
   * after the first `maxTokens` + 1 may be missing.
   */
  encodePrompt(messages: readonly HistoryMessage[], tools: readonly ChatTool[] | null, maxTokens: number): number[];
  /** The same without the opening of a reply: what the conversation looks like once it is over. */
  encodeConversation(messages: readonly HistoryMessage[], tools: readonly ChatTool[] | null): number[];
  encodeText(text: string): number[];
  /** Id of the token with these bytes; without bytes, the one a server writes so. null when no one token is meant. */
  idOf(token: string, bytes?: readonly number[] | null): number | null;
}
