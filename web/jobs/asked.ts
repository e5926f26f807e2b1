// What the gradient asked of every token, beside what the step did to it.
import type { TokenNumbers } from "./records.ts";

export interface Moved {
  /** Position in the sequence. */
  at: number;
  /** −dL/dℓ: above 0, the token was to become likelier. */
  asked: number;
  before: number;
  after: number;
  /** after − before */
  got: number;
}

export interface AskedAndGot {
  moved: Moved[];
  /** Tokens of which something was asked. */
  asked: number;
  /** Those of them that moved that way. */
  asAsked: number;
  /** The same, each token counted by how much was asked of it; 0 if nothing was. */
  share: number;
  /** Those that moved the other way, the worst first. */
  against: Moved[];
}

/** `before` and `after`: log-probabilities of all tokens of the sequence. */
export function askedAndGot(
  { positions, values }: TokenNumbers["sequences"][number],
  before: readonly number[],
  after: readonly number[],
): AskedAndGot {
  const moved = positions.map((at, t) => ({
    ...{ at, before: before[at]!, after: after[at]!, got: after[at]! - before[at]! },
    asked: -(values.gradient?.[t] ?? 0),
  }));
  const asked = moved.filter((one) => one.asked !== 0);
  const asAsked = asked.filter((one) => one.asked * one.got > 0);
  const size = (all: readonly Moved[]) => all.reduce((sum, one) => sum + Math.abs(one.asked), 0);
  return {
    ...{ moved, asked: asked.length, asAsked: asAsked.length },
    share: asked.length === 0 ? 0 : size(asAsked) / size(asked),
    against: asked
      .filter((one) => one.asked * one.got < 0)
      .sort((one, other) => one.asked * one.got - other.asked * other.got),
  };
}
