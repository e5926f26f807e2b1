// Teaching by hand: answers in an order, or with stars, become rewards and a group of trajectories. An answer is unrated until it
// is rated, and several may share a place.
import type { Choice, TrajectoryGroup } from "../../src/client/types.ts";
import type { Message } from "./message.ts";

export const RATINGS = ["order", "stars"] as const;
export type Rating = (typeof RATINGS)[number];

export const MOST_STARS = 5;

/** Answers by place, the best first. Those that are nowhere are not rated. */
export type Places = readonly (readonly number[])[];

export function placeOfAnswer(places: Places, answer: number): number | null {
  const at = places.findIndex((place) => place.includes(answer));
  return at < 0 ? null : at;
}

/** To a place of its own, before the one that has the number `to`. */
export function placed(places: Places, answer: number, to: number): Places {
  const parts = places.map((place) => place.filter((other) => other !== answer));
  return [...parts.slice(0, to), [answer], ...parts.slice(to)].filter((place) => place.length > 0);
}

/** One place up. An answer that is not rated gets the last place. */
export function raised(places: Places, answer: number): Places {
  const at = placeOfAnswer(places, answer);
  if (at === null) return [...places, [answer]];
  if (places[at]!.length > 1) return placed(places, answer, at);
  return at === 0 ? places : placed(places, answer, at - 1);
}

/** One place down. Below the last place nothing is rated. */
export function lowered(places: Places, answer: number): Places {
  const at = placeOfAnswer(places, answer);
  if (at === null) return places;
  if (places[at]!.length > 1) return placed(places, answer, at + 1);
  if (at < places.length - 1) return placed(places, answer, at + 2);
  return places.filter((_place, i) => i !== at);
}

/** Shares the place above; an answer that shares one already leaves it. */
export function tied(places: Places, answer: number): Places {
  const at = placeOfAnswer(places, answer);
  if (at === null) return places;
  if (places[at]!.length > 1) return placed(places, answer, at + 1);
  if (at === 0) return places;
  return places.flatMap((place, i) => (i === at - 1 ? [[...place, answer]] : i === at ? [] : [place]));
}

/** The best place gets 1 and the worst 0, evenly spaced; null: not rated. */
export function rewardsByOrder(places: Places, answers: number): (number | null)[] {
  return Array.from({ length: answers }, (_, answer) => {
    const at = placeOfAnswer(places, answer);
    if (at === null) return null;
    return places.length === 1 ? 1 : 1 - at / (places.length - 1);
  });
}

/** From 1 star (0) to all of them (1). No star: not rated. */
export function rewardsByStars(stars: readonly number[]): (number | null)[] {
  return stars.map((count) => (count === 0 ? null : (count - 1) / (MOST_STARS - 1)));
}

/** For every answer the first one that is the same: what is the same gets the same reward. */
export function firstOfSame(texts: readonly string[]): number[] {
  return texts.map((text) => texts.indexOf(text));
}

/** Why the rewards teach nothing; null if they do. */
export function whyUseless(rewards: readonly (number | null)[]): string | null {
  if (rewards.length < 2) return "Ask for two answers or more: n above 1.";
  const rated = rewards.filter((reward) => reward !== null);
  if (rated.length === 0) return "Rate the answers first.";
  if (rated.length === 1) return "Rate one more answer.";
  if (rated.every((reward) => reward === rated[0])) return "All answers are rated alike: there is nothing to learn.";
  return null;
}

export interface Rated {
  choice: Record<string, unknown>;
  /** Null: it is left out. */
  reward: number | null;
  /** The step of the policy that answered; null: another model did. */
  version: number | null;
}

export function groupOf(
  messages: readonly Message[],
  tools: unknown[] | null,
  answers: readonly Rated[],
): TrajectoryGroup {
  const trajectories = answers.flatMap(({ choice, reward, version }) => {
    if (reward === null) return [];
    return [
      {
        messages_and_choices: [...messages.map((message) => ({ ...message })), choice as unknown as Choice],
        ...(tools === null ? {} : { tools }),
        reward,
        ...(version === null ? {} : { initial_policy_version: version }),
        metadata: { source: "playground" },
      },
    ];
  });
  return { trajectories };
}
