// What clients submit: groups of scored trajectories, each with one or more histories of messages and sampled choices.
// The API reads these from the wire and keeps only what training needs. They are stored on disk in this form.

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
