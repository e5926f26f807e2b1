// What the routes of a job's record answer.

import { type Static, Type } from "typebox";
import { TOKEN_FIELDS } from "../../training/gradient/token-numbers.ts";
import { AnyObject, Moment, nullable, orNull, Uuid } from "../schema/body.ts";
import { listOf } from "../schema/list.ts";

const RolloutException = Type.Object(
  { type: nullable(Type.String()), message: Type.String() },
  { additionalProperties: true, description: "A failed rollout, as it was sent." },
);

const verdict = {
  status: nullable(Type.String({ description: "The verdict, as in the job's report; null before the job trains." })),
  reason: nullable(Type.String({ description: "The verdict again if it was left out, else null." })),
  advantage: nullable(Type.Number()),
};

const GroupBody = Type.Object(
  {
    id: Type.String(),
    group: Type.Integer({ description: "Its index, or that of an example." }),
    task: nullable(
      Type.String({
        description: "The beginning of the user turn that the first sampled reply answers, up to 200 characters.",
      }),
    ),
    rewards: Type.Array(Type.Number()),
    mean: nullable(Type.Number()),
    spread: nullable(Type.Number({ description: "Population standard deviation of the rewards." })),
    verdicts: Type.Record(Type.String(), Type.Integer(), { description: "Number of trajectories by status." }),
    trajectories: Type.Array(
      Type.Object({
        trajectory: Type.Integer(),
        reward: nullable(Type.Number()),
        ...verdict,
        tokens: nullable(Type.Integer()),
        trainable_tokens: nullable(Type.Integer()),
        initial_policy_version: nullable(Type.Integer({ description: "The step that it began with, as sent." })),
      }),
    ),
    exceptions: Type.Array(RolloutException, { description: "The first 100, shortened to 500 characters." }),
    metadata: Type.Unknown({ description: "As sent; null if it has more than 4,096 characters of JSON." }),
    logs: Type.Unknown({ description: "Likewise." }),
  },
  { title: "TrajectoryGroupRecord" },
);
export const GroupList = listOf(GroupBody, "TrajectoryGroupRecordList");

/** The page draws 1,000 groups at once. */
export const GroupPage = Type.Object({
  after: orNull(Type.Integer({ minimum: 0 }), { description: "The index of the last group seen." }),
  limit: orNull(Type.Integer({ minimum: 1, maximum: 1000 }), { default: 20 }),
});

/** Most groups that are searched at once: their trajectories are read whole. */
const MOST_SEARCHED = 200;

export const SearchPage = Type.Object({
  text: Type.String({ minLength: 1, maxLength: 1000, description: "In any case." }),
  after: orNull(Type.Integer({ minimum: 0 }), { description: "The index of the last group searched." }),
  limit: orNull(Type.Integer({ minimum: 1, maximum: MOST_SEARCHED }), {
    default: 20,
    description: "How many groups to search.",
  }),
});

export const Matches = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(
      Type.Object({
        id: Type.String(),
        group: Type.Integer(),
        trajectories: Type.Array(Type.Integer(), { description: "Their indices in the group." }),
      }),
    ),
    searched_to: nullable(
      Type.Integer({ description: "The index of the last group searched; null if there was none." }),
    ),
    has_more: Type.Boolean({ description: "Whether there are groups after it." }),
  },
  { title: "TrajectoryMatchList" },
);

const Items = Type.Array(AnyObject);
const Tools = nullable(Items);

export const TrajectoryRecordBody = Type.Object(
  {
    object: Type.Literal("trajectory"),
    job_id: Uuid,
    model_id: Uuid,
    group: Type.Integer(),
    trajectory: Type.Integer(),
    size: Type.Integer({ description: "Number of trajectories in the group." }),
    job_status: Type.String({ description: "PENDING, RUNNING, COMPLETED, FAILED or CANCELLED." }),
    from_step: nullable(Type.Integer({ description: "The step that the job trained from." })),
    reward: nullable(Type.Number()),
    ...verdict,
    weight: nullable(Type.Number({ description: "Weight of each of its tokens." })),
    message: nullable(Type.String({ description: "Why it was left out, in whole or in part." })),
    messages_and_choices: Type.Array(AnyObject, { description: "As sent, like the fields below." }),
    tools: Tools,
    additional_histories: Items,
    exchanges: nullable(AnyObject),
    metadata: nullable(AnyObject),
    metrics: nullable(AnyObject),
    logs: nullable(Type.Array(Type.Unknown())),
    start_time: nullable(Moment),
    initial_policy_version: nullable(Type.Integer()),
    final_policy_version: nullable(Type.Integer()),
    sequences: Type.Array(
      Type.Object({
        tokens: Type.Array(Type.Integer()),
        token_strings: Type.Array(Type.String({ description: "The text of each token; empty inside a character." })),
        mask: Type.Array(Type.Integer({ description: "1 where the token is trained." })),
        logprobs: Type.Array(nullable(Type.Number({ description: "The sampler's." }))),
        advantages: Type.Array(Type.Number()),
        gradient_step: nullable(
          Type.Integer({ description: "Index of the gradient step that trained it; null if it was not trained." }),
        ),
        gradient_step_tokens: nullable(
          Type.Integer({ description: "Trained tokens of that gradient step; its loss is their mean." }),
        ),
      }),
      { description: "Empty for what was left out before it was tokenised." },
    ),
    exceptions: Type.Array(RolloutException, { description: "Failed rollouts of its group." }),
  },
  { title: "TrajectoryRecord" },
);

const numbers = Object.fromEntries(TOKEN_FIELDS.map((field) => [field, Type.Array(nullable(Type.Number()))]));
export const TokenNumbersBody = Type.Object(
  {
    object: Type.Literal("token_numbers"),
    fields: Type.Array(Type.String()),
    sequences: Type.Array(
      Type.Object({
        sequence: Type.Integer({ description: "Index of the sequence in the trajectory." }),
        positions: Type.Array(Type.Integer({ description: "Indices of the trained tokens in the sequence." })),
        values: Type.Object(numbers, {
          description: "A list per field, one value per position; null = does not apply.",
        }),
      }),
      { description: "Those of the trajectory that were trained." },
    ),
  },
  { title: "TokenNumbers" },
);

export type GroupRow = Static<typeof GroupBody>;
export type TrajectoryRow = Static<typeof TrajectoryRecordBody>;
