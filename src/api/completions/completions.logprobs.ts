// The older log-probability format: parallel arrays of tokens, values, alternatives and text offsets. Streamed pieces
// concatenate to the arrays of a whole reply.
import type { Static } from "typebox";
import type { TokenLogprobs } from "../../sampling/token-logprobs.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { floored, type WireTokenLogprob } from "../run/logprobs.wire.ts";
import type { TextLogprobs } from "./completions.schema.ts";

/** One position: token text, value (null for the first token of a text) and alternatives. */
export interface TextLogprob {
  token: string;
  logprob: number | null;
  top: Record<string, number> | null;
}

export class TextLogprobWriter {
  /** In characters, as Python clients count, not UTF-16 units. */
  #offset = 0;

  /** Converts `entries` to arrays. Offsets continue from the last call. */
  write(entries: readonly TextLogprob[]): Static<typeof TextLogprobs> {
    const arrays: Static<typeof TextLogprobs> = { text_offset: [], token_logprobs: [], tokens: [], top_logprobs: [] };
    for (const { token, logprob, top } of entries) {
      arrays.text_offset.push(this.#offset);
      arrays.token_logprobs.push(logprob);
      arrays.tokens.push(token);
      arrays.top_logprobs.push(top);
      this.#offset += Array.from(token).length;
    }
    return arrays;
  }
}

/** Converts from the chat form. The alternatives always include the token itself, so there are k or k + 1. */
export function fromContent(entry: WireTokenLogprob): TextLogprob {
  const top = [[entry.token, entry.logprob] as const, ...entry.top_logprobs.map((t) => [t.token, t.logprob] as const)];
  return { token: entry.token, logprob: entry.logprob, top: Object.fromEntries(top) };
}

/** The prompt's own tokens, for echo. */
export function promptEntries(
  tokenizer: Tokenizer,
  ids: readonly number[],
  logprobs: readonly (TokenLogprobs | null)[],
  asIds: boolean,
): TextLogprob[] {
  const walk = new TokenTextWalk(tokenizer, { asIds });
  return ids.map((id, i) => {
    const here = logprobs[i] ?? null;
    const alternatives = (here?.topIds ?? []).map((other, k): [string, number] => [
      walk.text(other),
      floored(here!.topLogprobs[k]!),
    ]);
    const { token } = walk.advance(id);
    if (here === null) return { token, logprob: null, top: null };
    const logprob = floored(here.logprob);
    return { token, logprob, top: Object.fromEntries([[token, logprob], ...alternatives]) };
  });
}
