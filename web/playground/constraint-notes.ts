// What a constraint did at a token, in sentences.
import { count, percent } from "../format.ts";

interface Likely {
  token_string: string;
  logprob: number;
}

/** What a constraint did at one token. */
export interface Position {
  /** Number of legal tokens. */
  legal: number;
  forced: boolean;
  may_end: boolean;
  /** The model's probability of all legal tokens together. */
  legal_mass?: number;
  likeliest_illegal?: Likely | null;
}

export function constraintNotes({ legal, forced, may_end, legal_mass, likeliest_illegal }: Position): string[] {
  const notes = [forced ? "the constraint left only this token" : `the constraint left ${count(legal, "token")}`];
  if (legal_mass !== undefined) notes[0] += `, ${percent(legal_mass)} of the model's probability`;
  if (likeliest_illegal && Math.exp(likeliest_illegal.logprob) > (legal_mass ?? 1) / 2) {
    const { token_string, logprob } = likeliest_illegal;
    notes.push(`the model wanted ${JSON.stringify(token_string)} (${percent(Math.exp(logprob))})`);
  }
  if (may_end) notes.push("the reply could have ended before it");
  return notes;
}
