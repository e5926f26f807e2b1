// Wire schemas for training data: trajectory groups, the parts of a trajectory, and examples. Clients may spell every
// field out with nulls or leave defaults out. Unknown fields are ignored.

import { type Static, Type } from "typebox";
import { Tool } from "../generation/messages.ts";
import { AnyObject, Moment, orNull } from "../schema/body.ts";

/** Metrics that a trajectory or group may have and a request may log. Each is stored with a step. */
export const MAX_METRICS = 1000;

const TokenIds = orNull(Type.Array(Type.Integer()));
const Tools = orNull(Type.Array(Tool, { maxItems: 4_000 }), {
  description: "Rendered into the prompt by the chat template.",
});

/** Rewards and metrics are averaged. Within these bounds, their sums and sums of squares stay finite. */
const Averaged = Type.Number({ minimum: -1e100, maximum: 1e100 });

const Metrics = orNull(
  Type.Record(Type.String(), Averaged, { maxProperties: MAX_METRICS, propertyNames: { maxLength: 256 } }),
  { description: "Numbers by name; true and false count as 1 and 0." },
);

const LogprobEntry = Type.Object({
  logprob: Type.Number(),
  token: orNull(Type.String(), { description: "Required unless token ids are given: the text, or token_id:N." }),
  bytes: orNull(Type.Array(Type.Integer())),
  token_id: orNull(Type.Integer()),
});

const sampled = {
  logprobs: orNull(
    Type.Object({ content: orNull(Type.Array(LogprobEntry)), refusal: orNull(Type.Array(LogprobEntry)) }),
    { description: "Required for training unless allow_training_without_logprobs is set." },
  ),
  token_ids: TokenIds,
  prompt_token_ids: TokenIds,
};

/** trajectory.wire.ts reads the other fields later, as chat does. */
const content = orNull(Type.Union([Type.String(), Type.Array(Type.Unknown())]));

export const HistoryMessageBody = Type.Object(
  { role: Type.String(), content, ...sampled },
  {
    title: "HistoryMessage",
    additionalProperties: true,
    description: "A chat message; log-probabilities make it a choice.",
  },
);

export const ChoiceBody = Type.Object(
  {
    message: Type.Object(
      { role: orNull(Type.String(), { default: "assistant" }), content },
      { additionalProperties: true },
    ),
    ...sampled,
  },
  { title: "Choice", description: "A choice as returned by a chat completion." },
);

/** More than any model reads; each is checked by itself, which takes a while. */
const MOST_MESSAGES = 20_000;

const HistoryItems = Type.Array(Type.Union([HistoryMessageBody, ChoiceBody]), { maxItems: MOST_MESSAGES });

const HistoryBody = Type.Object({ messages_and_choices: HistoryItems, tools: Tools });

export const ExchangeBody = Type.Object({
  request: orNull(
    Type.Object({ messages: orNull(Type.Array(HistoryMessageBody, { maxItems: MOST_MESSAGES })), tools: Tools }),
  ),
  response: orNull(Type.Object({ choices: orNull(Type.Array(ChoiceBody)), prompt_token_ids: TokenIds })),
});

const untrainable = orNull(Type.Array(Type.Unknown()), { description: "Cannot be trained here." });

export const TrajectoryBody = Type.Object(
  {
    messages_and_choices: orNull(HistoryItems),
    tools: Tools,
    additional_histories: orNull(Type.Array(HistoryBody)),
    exchanges: orNull(
      Type.Object({
        chat_completions: orNull(Type.Array(ExchangeBody)),
        completions: untrainable,
        responses: untrainable,
        messages: untrainable,
      }),
      { description: "Captured API calls, instead of the three fields above." },
    ),
    reward: orNull(Averaged, { default: 0 }),
    initial_policy_version: orNull(Type.Integer()),
    final_policy_version: orNull(Type.Integer()),
    metrics: Metrics,
    metadata: orNull(AnyObject),
    logs: orNull(Type.Array(Type.Unknown())),
    start_time: orNull(Moment),
  },
  { title: "Trajectory" },
);

export const TrajectoryGroupBody = Type.Object(
  {
    trajectories: orNull(Type.Array(TrajectoryBody)),
    exceptions: orNull(Type.Array(Type.Unknown()), {
      description: "Failed rollouts. Training counts them; the job's record keeps them.",
    }),
    metrics: Metrics,
  },
  { title: "TrajectoryGroup" },
);

export const ExampleBody = Type.Object(
  {
    messages: Type.Array(HistoryMessageBody, {
      maxItems: MOST_MESSAGES,
      description: "The last message must be the assistant's.",
    }),
    tools: Tools,
  },
  { title: "Example" },
);

export type WireHistoryMessage = Static<typeof HistoryMessageBody>;
export type WireChoice = Static<typeof ChoiceBody>;
export type WireHistoryItem = WireHistoryMessage | WireChoice;
export type WireExchange = Static<typeof ExchangeBody>;
export type WireTrajectory = Static<typeof TrajectoryBody>;
export type LogprobEntry = Static<typeof LogprobEntry>;
