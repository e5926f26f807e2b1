// What clients submit: groups of scored trajectories, each one or more histories of messages and sampled choices.
// The API makes these checked, compact forms. They are written to disk; what the trainer does not read is already gone.

import type { ChatMessage, ChatTool } from "../../text/messages.ts";

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
  /** What the model was given, when the endpoint said so. */
  promptTokenIds: readonly number[] | null;
  tokenIds: readonly number[] | null;
  /** One entry per sampled token; null = the sampler did not report them. */
  logprobs: readonly number[] | null;
  /** The tokens as the log-probability entries spell them ("token_id:17" or text). */
  tokens: readonly string[] | null;
  /** The bytes of those tokens, where the entries have them; absent when the ids are known. */
  bytes?: readonly (readonly number[] | null)[];
}

export type HistoryItem =
  | { message: HistoryMessage }
  | {
      choice: SampledChoice;
      /** Where the choice of a captured call was sent: "exchanges.chat_completions[0].response.choices[0]". */
      at?: string;
    };

export interface History {
  items: readonly HistoryItem[];
  tools: readonly ChatTool[] | null;
  /** Where the request of a captured call was sent. Its messages are context: what of them was sampled has its own call. */
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

/** A long group is kept in parts: trajectories of their own, then the group with those that are not. */
export type GroupPart = Trajectory | TrajectoryGroup;

export function messageOf(item: HistoryItem): HistoryMessage {
  return "choice" in item ? item.choice.message : item.message;
}
