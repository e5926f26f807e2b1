// Rollouts to show: what a policy answered, with rewards, so that a job has every verdict.
import type { Choice, FlywheelClient, Trajectory, TrajectoryGroup } from "../../src/client/client.ts";

/** What states.ts shows: two policies that have learnt, each from one job. All are ids. */
export interface Story {
  policy: string;
  job: string;
  rival: string;
  rivalJob: string;
}

/** Trains the policy "agent" from the groups of `storyGroups`, and "rival" from one group. */
export async function tellStory(client: FlywheelClient): Promise<Story> {
  const [base] = await client.baseModels();
  const learn = async (name: string, groups: () => Promise<TrajectoryGroup[]>) => {
    const { id } = await client.register({ project: "stories", name, base_model: base! });
    return [id, (await client.train(id, await groups())).id] as const;
  };
  const [policy, job] = await learn("agent", () => storyGroups(client, "agent"));
  const question = "What is 412 + 99?";
  const [rival, rivalJob] = await learn("rival", async () => [
    groupOf(question, await answers(client, "rival", question, 8), STORY_REWARDS[0]!),
  ]);
  return { policy, job, rival, rivalJob };
}

/** `n` answers of the policy to one question, as they were sampled. */
export async function answers(client: FlywheelClient, model: string, content: string, n: number): Promise<Choice[]> {
  const messages = [{ role: "user", content }];
  const sampling = { n, max_tokens: 6, temperature: 1, seed: 1, logprobs: true, return_token_ids: true };
  return (await client.chat({ model, messages, ...sampling })).choices;
}

/** One group: a question, and the answers to it with their rewards. */
export function groupOf(
  content: string,
  choices: readonly Choice[],
  rewards: readonly number[],
  more: Partial<Trajectory> = {},
): TrajectoryGroup {
  const turn = { role: "user", content };
  return {
    trajectories: rewards.map((reward, i) => ({
      ...{ messages_and_choices: [turn, choices[i % choices.length]!], reward, initial_policy_version: 0 },
      ...more,
    })),
  };
}

/** The rewards of the groups of `storyGroups`. */
export const STORY_REWARDS = [
  [0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9, 1],
  [1, 1, 1, 1, 1, 1, 1, 1],
  [0, 0, 0.5, 0, 0, 0, 0, 0.25],
];

/**
 * Three groups of eight: one to learn from, one whose answers are all alike, and one with a bit of everything: its third rollout
 * calls a tool, reasons and is hostile, its last is too long, and a rollout failed.
 */
export async function storyGroups(client: FlywheelClient, model: string): Promise<TrajectoryGroup[]> {
  const questions = ["What is 412 + 99?", "What is 100 + 200?", "Name a fish."];
  const groups = [];
  for (const [i, question] of questions.entries()) {
    groups.push(groupOf(question, await answers(client, model, question, 8), STORY_REWARDS[i]!));
  }
  const last = groups[2]!;
  last.exceptions = [{ type: "TimeoutError", message: "no reply" }];
  const [asked, third] = last.trajectories[2]!.messages_and_choices as [object, Choice];
  const call = { id: "1", type: "function", function: { name: "look", arguments: '{"at":"sea"}' } };
  last.trajectories[2] = {
    ...{ reward: 0.5, metadata: { difficulty: 2 }, metrics: { words: 3 }, logs: ["a line"], initial_policy_version: 0 },
    messages_and_choices: [
      { ...asked, role: "user", content: "Name a fish. <img src=x onerror=\"console.error('ran')\">" },
      // The tokens are the sampled ones; what the client read from them is the client's word.
      { ...third, message: { role: "assistant", content: null, tool_calls: [call] } },
      { role: "tool", tool_call_id: "1", content: "waves" },
      { ...third, message: { role: "assistant", content: "A cod.", reasoning: "Hm, fish." } },
    ],
  };
  const long = last.trajectories[7]!.messages_and_choices[1] as Choice;
  last.trajectories[7]!.messages_and_choices[1] = { ...long, prompt_token_ids: Array<number>(600).fill(5) };
  return groups;
}
