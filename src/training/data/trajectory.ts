// What clients submit: groups of scored trajectories, each with one or more histories of messages and sampled choices.
// The API reads these from the wire and keeps only what training needs. They are stored on disk in this form.
import type { ChatMessage, ChatTool } from "../../text/messages.ts";
import type { PromptError } from "../../text/prompt-error.ts";

export interface HistoryMessage extends ChatMessage {
  /** Why chat would refuse this message. It matters only if the message must be rendered or trained as text. */
  refusal?: Refusal;
}

export interface Refusal {
  /** Path inside the message: ".content.0.type". */
  field: string;
  reason: string;
}

/** One completion as a chat endpoint returned it. */
export interface SampledChoice {
  /** The assistant message. */
  message: HistoryMessage;
  /** The prompt, if the endpoint returned it. */
  promptTokenIds: readonly number[] | null;
  tokenIds: readonly number[] | null;
  /** One entry per sampled token; null = the sampler did not report them. */
  logprobs: readonly number[] | null;
  /** The tokens as the log-probability entries spell them ("token_id:17" or text). */
  tokens: readonly string[] | null;
  /** The bytes of those tokens, where the entries have them. Absent when the ids are known. */
  bytes?: readonly (readonly number[] | null)[];
}

export type HistoryItem =
  | { message: HistoryMessage }
  | {
      choice: SampledChoice;
      /** Path of the choice of a captured call, for example "exchanges.chat_completions[0].response.choices[0]". */
      at?: string;
    };

export interface History {
  items: readonly HistoryItem[];
  tools: readonly ChatTool[] | null;
  /** Path of the request of a captured call. Its messages are context; replies among them have calls of their own. */
  requestAt?: string;
}

export interface Trajectory {
  /** The primary history, then the additional ones. */
  histories: readonly History[];
  reward: number;
  /** The policy step it began with; null = unknown. */
  initialPolicyVersion: number | null;
  metrics: Readonly<Record<string, number>>;
}

export interface TrajectoryGroup {
  trajectories: readonly Trajectory[];
  /** Rollouts that failed. */
  exceptions: number;
  metrics: Readonly<Record<string, number>>;
}

/** A long group is stored in parts: some trajectories on their own, then the group with the rest. */
export type GroupPart = Trajectory | TrajectoryGroup;

export function messageOf(item: HistoryItem): HistoryMessage {
  return "choice" in item ? item.choice.message : item.message;
}

// Says where in the submitted data something is wrong. Messages are rendered from a list of elements with the same
// indices, so the path of a refused message translates to the path of its element.

/** Where the elements of a history are in the request. */
export interface Places {
  /** Path of the list of its elements, for example "messages_and_choices". */
  elements: string;
  element(index: number): string;
}

/** `elements`: path of the list, unless the history is a captured call. */
export function placesOf({ items, requestAt }: History, elements: string): Places {
  const list = requestAt === undefined ? elements : `${requestAt}.messages`;
  return {
    elements: list,
    element(index) {
      const item = items[index]!;
      return ("choice" in item ? item.at : undefined) ?? `${list}[${index}]`;
    },
  };
}

export function refusalText({ param, message }: PromptError, { elements, element }: Places): string {
  const [, index, field] = /^messages\.(\d+)(.*)$/.exec(param ?? "") ?? [];
  return `${index === undefined ? elements : `${element(Number(index))}${field}`}: ${message}`;
}

// How training turns chats into token ids. The API implements it with the served model's tokenizer and chat template.

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
