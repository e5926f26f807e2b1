// What clients submit: groups of scored trajectories, each one or more histories of messages and sampled choices.
// These are the checked, compact forms the edge makes from the wire (and that are spooled to disk): everything the
// trainer does not read is already gone.

/** Anything the chat template understands; passed through to it as it came. */
export interface ChatMessage {
  role: string;
  [field: string]: unknown;
}

/** One completion as a chat endpoint returned it. */
export interface SampledChoice {
  /** The assistant message. */
  message: ChatMessage;
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
  | { message: ChatMessage }
  | {
      choice: SampledChoice;
      /** Where the choice of a captured call was sent: "exchanges.chat_completions[0].response.choices[0]". */
      at?: string;
    };

export interface History {
  items: readonly HistoryItem[];
  tools: readonly unknown[] | null;
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

export function messageOf(item: HistoryItem): ChatMessage {
  return "choice" in item ? item.choice.message : item.message;
}
