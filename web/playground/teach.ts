// Teaching by hand: answers in an order, or with stars, become rewards and a group of trajectories.
import type { Choice, TrajectoryGroup } from "../../src/client/types.ts";
import type { Message } from "./request.ts";

export const RATINGS = ["order", "stars"] as const;
export type Rating = (typeof RATINGS)[number];

export const MOST_STARS = 5;

/** Moves one item of a list to another place. */
export function moved<Item>(list: readonly Item[], from: number, to: number): Item[] {
  const rest = list.filter((_item, i) => i !== from);
  const place = Math.max(0, Math.min(rest.length, to));
  return [...rest.slice(0, place), list[from]!, ...rest.slice(place)];
}

/** `order` has the numbers of the answers, the best first. The best gets 1 and the worst 0, evenly spaced. */
export function rewardsByOrder(order: readonly number[]): number[] {
  const rewards = new Array<number>(order.length).fill(0);
  order.forEach((answer, rank) => {
    rewards[answer] = order.length === 1 ? 1 : 1 - rank / (order.length - 1);
  });
  return rewards;
}

/** From 1 star (0) to all of them (1). No star counts as one. */
export function rewardsByStars(stars: readonly number[]): number[] {
  return stars.map((count) => (Math.max(1, count) - 1) / (MOST_STARS - 1));
}

/** Why the rewards teach nothing; null if they do. */
export function whyUseless(rewards: readonly number[]): string | null {
  if (rewards.length < 2) return "Ask for two answers or more: n above 1.";
  if (rewards.every((reward) => reward === rewards[0]))
    return "All answers are rated alike: there is nothing to learn.";
  return null;
}

export function groupOf(
  messages: readonly Message[],
  choices: readonly Record<string, unknown>[],
  rewards: readonly number[],
): TrajectoryGroup {
  const trajectories = choices.map((choice, i) => ({
    messages_and_choices: [...messages.map((message) => ({ ...message })), choice as Choice],
    reward: rewards[i]!,
    metadata: { source: "playground" },
  }));
  return { trajectories };
}
