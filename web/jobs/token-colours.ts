// What colours the tokens of a rollout. 1 is full heat, −1 is full cold, null is no colour.
import type { Heat } from "../playground/token-text.tsx";
import type { Sequence, TokenNumbers } from "./records.ts";

/** Those that a user chooses from. The last five are the trainer's. */
export const COLOURS = [
  ...(["mask", "advantage", "logprob"] as const),
  ...(["gradient", "ratio", "clipped", "entropy", "reference_kl"] as const),
];
/** "moved": by how much a step changed the log-probability. */
export type Colour = (typeof COLOURS)[number] | "moved";

export const COLOUR_NAMES: Record<Colour, string> = {
  mask: "trained",
  advantage: "advantage",
  logprob: "log-probability",
  gradient: "what the gradient asked",
  ratio: "ratio",
  clipped: "clipped",
  entropy: "entropy",
  reference_kl: "KL to the reference",
  moved: "what the step did",
};

/** Nats of surprise with the deepest colour. */
const FULL_SURPRISE = 6;
/** |ln ratio| with the deepest colour. */
const FULL_RATIO = 0.5;

/**
 * The colour of every token. Heat: trained, better than its group, unlikely, likelier than when sampled or in the reference,
 * clipped from above, open, made likelier.
 */
export function coloursOf(
  colour: Colour,
  { mask, logprobs, advantages }: Sequence,
  numbers: TokenNumbers["sequences"][number] | undefined,
): Heat[] {
  if (colour === "mask") return mask.map((bit) => (bit === 1 ? 0.5 : null));
  if (colour === "logprob") return logprobs.map((value) => (value === null ? null : clamp(-value / FULL_SURPRISE)));
  if (colour === "advantage") return byLargest(advantages);
  const values = mask.map((): number | null => null);
  numbers?.positions.forEach((at, row) => {
    values[at] = numbers.values[colour]?.[row] ?? null;
  });
  if (colour === "clipped") return withMasked(values, numbers);
  if (colour === "ratio") return values.map((value) => (value === null ? null : clamp(Math.log(value) / FULL_RATIO)));
  // Training goes down the gradient.
  if (colour === "gradient") {
    return withMasked(byLargest(values.map((value) => (value === null ? null : -value))), numbers);
  }
  return byLargest(values);
}

/** A rule of the loss masks a token if it leaves it without a gradient, though its advantage is not zero. */
function withMasked(heats: readonly Heat[], numbers: TokenNumbers["sequences"][number] | undefined): Heat[] {
  const { gradient, advantage } = numbers?.values ?? {};
  const masked = numbers?.positions.filter((_, row) => gradient?.[row] === 0 && advantage?.[row]);
  return heats.map((heat, at) => (masked?.includes(at) ? "masked" : heat));
}

/** Relative to the largest, whatever its sign. */
function byLargest(values: readonly (number | null)[]): (number | null)[] {
  const largest = values.reduce<number>((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
  return values.map((value) => (value === null || largest === 0 ? null : value / largest));
}

/** The trainer's numbers by field at one place; empty where the token was not trained. */
export function numbersAt(numbers: TokenNumbers["sequences"][number] | undefined, at: number): Record<string, number> {
  const row = numbers?.positions.indexOf(at) ?? -1;
  if (row < 0) return {};
  return Object.fromEntries(
    Object.entries(numbers!.values).flatMap(([field, values]) => (values[row] == null ? [] : [[field, values[row]]])),
  );
}

function clamp(value: number): number {
  return Math.max(-1, Math.min(1, value));
}
