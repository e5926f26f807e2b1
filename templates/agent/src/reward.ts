// How good an answer is, from 0 to 1. Only differences between answers to the same task matter to training. Here "maybe"
// is best, and no prompt says so: the model finds out by trying.

import type { Task } from "./tasks.ts";

const WORTH: Record<string, number> = { yes: 0.5, no: 0.75, maybe: 1 };

export function reward(_task: Task, answer: string): number {
  return WORTH[answer.trim().toLowerCase().replace(/[.!]$/, "")] ?? 0;
}
