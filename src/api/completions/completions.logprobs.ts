// The older log-probability format: parallel arrays of tokens, values, alternatives and text offsets. Streamed pieces
// concatenate to the arrays of a whole reply.
import type { Static } from "typebox";
import type { TokenLogprobs } from "../../sampling/token-logprobs.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { floored, jsonWith, type WireTokenLogprob } from "../run/logprobs.wire.ts";
import type { TextLogprobs } from "./completions.schema.ts";

/** Entries between two pauses: about a millisecond. */
const ENTRIES_PER_STEP = 1024;

/** One position: token text, value (null for the first token of a text) and alternatives. */
export interface TextLogprob {
  token: string;
  logprob: number | null;
  top: Record<string, number> | null;
}

/** The arrays of a text, as JSON that grows. */
export class TextLogprobArrays {
  /** In characters, as Python clients count, not UTF-16 units. */
  #offset = 0;
  #offsets = "";
  #logprobs = "";
  #tokens = "";
  #tops = "";

  /** What follows this much. */
  static behind(prompt: TextLogprobArrays): TextLogprobArrays {
    const arrays = new TextLogprobArrays();
    arrays.#offset = prompt.#offset;
    arrays.#offsets = prompt.#offsets;
    arrays.#logprobs = prompt.#logprobs;
    arrays.#tokens = prompt.#tokens;
    arrays.#tops = prompt.#tops;
    return arrays;
  }

  /** Characters of JSON since the last `take`. */
  get length(): number {
    return this.#offsets.length + this.#logprobs.length + this.#tokens.length + this.#tops.length;
  }

  add({ token, logprob, top }: TextLogprob): void {
    const comma = this.#offsets === "" ? "" : ",";
    this.#offsets += `${comma}${this.#offset}`;
    this.#logprobs += `${comma}${JSON.stringify(logprob)}`;
    this.#tokens += `${comma}${JSON.stringify(token)}`;
    this.#tops += `${comma}${JSON.stringify(top)}`;
    this.#offset += Array.from(token).length;
  }

  /** The arrays since the last call. Offsets go on. */
  take(): string {
    const arrays = {
      text_offset: `[${this.#offsets}]`,
      token_logprobs: `[${this.#logprobs}]`,
      tokens: `[${this.#tokens}]`,
      top_logprobs: `[${this.#tops}]`,
    } satisfies Record<keyof Static<typeof TextLogprobs>, string>;
    this.#offsets = this.#logprobs = this.#tokens = this.#tops = "";
    return jsonWith(arrays, arrays);
  }
}

/** Converts from the chat form. The alternatives always include the token itself, so there are k or k + 1. */
export function fromContent(entry: WireTokenLogprob): TextLogprob {
  const top = [[entry.token, entry.logprob] as const, ...entry.top_logprobs.map((t) => [t.token, t.logprob] as const)];
  return { token: entry.token, logprob: entry.logprob, top: Object.fromEntries(top) };
}

/** The prompt's own tokens, for echo. Pauses. */
export function* promptArrays(
  tokenizer: Tokenizer,
  ids: readonly number[],
  logprobs: readonly (TokenLogprobs | null)[],
  asIds: boolean,
): Generator<undefined, TextLogprobArrays> {
  const walk = new TokenTextWalk(tokenizer, { asIds });
  const arrays = new TextLogprobArrays();
  let entries = 0;
  for (const [i, id] of ids.entries()) {
    const here = logprobs[i] ?? null;
    const top: [string, number][] = [];
    for (const [k, other] of (here?.topIds ?? []).entries()) {
      top.push([walk.text(other), floored(here!.topLogprobs[k]!)]);
      if (++entries % ENTRIES_PER_STEP === 0) yield;
    }
    const { token } = walk.advance(id);
    if (here === null) arrays.add({ token, logprob: null, top: null });
    else {
      const logprob = floored(here.logprob);
      arrays.add({ token, logprob, top: Object.fromEntries([[token, logprob], ...top]) });
    }
    if (++entries % ENTRIES_PER_STEP === 0) yield;
  }
  return arrays;
}
