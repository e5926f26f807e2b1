// One rollout of a job: what was said, its tokens, and what the trainer computed for them.
import type { TrainingJob } from "../../src/client/types.ts";
import type { Token } from "../playground/tokens.ts";
import type { RolloutException, TryRow } from "./records.ts";

export interface Sequence {
  tokens: number[];
  token_strings: string[];
  mask: (0 | 1)[];
  logprobs: (number | null)[];
  advantages: number[];
  gradient_step: number | null;
  gradient_step_tokens: number | null;
}

export interface Trajectory extends TryRow {
  job_id: string;
  model_id: string;
  job_status: TrainingJob["status"];
  group: number;
  size: number;
  from_step: number | null;
  weight: number | null;
  message: string | null;
  messages_and_choices: Record<string, unknown>[];
  tools: unknown[] | null;
  metadata: object | null;
  metrics: object | null;
  logs: unknown[] | null;
  sequences: Sequence[];
  exceptions: RolloutException[];
}

/** By the names of fields; a value per trained token. */
export interface TokenNumbers {
  sequences: { sequence: number; positions: number[]; values: Record<string, (number | null)[]> }[];
}

export function tokensOf({ tokens, token_strings, logprobs }: Sequence): Token[] {
  return tokens.map((id, i) => {
    const text = token_strings[i] ?? `⟨${id}⟩`;
    return { id, text, bytes: [], logprob: logprobs[i] ?? Number.NaN, top: [] };
  });
}

/** The trainer's numbers by field at one place; empty where the token was not trained. */
export function numbersAt(numbers: TokenNumbers["sequences"][number] | undefined, at: number): Record<string, number> {
  const row = numbers?.positions.indexOf(at) ?? -1;
  if (row < 0) return {};
  return Object.fromEntries(
    Object.entries(numbers!.values).flatMap(([field, values]) => (values[row] == null ? [] : [[field, values[row]]])),
  );
}
