// Reads n, the number of choices, and checks its bounds.
import { ServiceError } from "../../errors/service-error.ts";

export const MAX_CHOICES = 16384;

export function readChoiceCount(n: number | null | undefined): number {
  const count = n ?? 1;
  if (count < 1 || count > MAX_CHOICES) {
    throw new ServiceError("invalid_value", `n must be at least 1 and at most ${MAX_CHOICES}, got ${count}.`);
  }
  return count;
}
