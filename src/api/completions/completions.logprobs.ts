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

type ArrayName = keyof Static<typeof TextLogprobs>;

/** The arrays of a text, as JSON that grows. */
export class TextLogprobArrays {
  /** In characters, as Python clients count, not UTF-16 units. */
  #offset = 0;
  /** Elements as JSON, with commas. They are joined when they are taken. */
  #parts: Record<ArrayName, string[]> = { text_offset: [], token_logprobs: [], tokens: [], top_logprobs: [] };
  /** Characters of JSON since the last `take`. */
  #length = 0;

  /** What follows this much, which several texts may begin with. */
  static behind(prompt: TextLogprobArrays): TextLogprobArrays {
    const arrays = new TextLogprobArrays();
    arrays.#offset = prompt.#offset;
    arrays.#length = prompt.#length;
    for (const [name, parts] of Object.entries(prompt.#parts)) {
      if (parts.length > 1) parts.splice(0, parts.length, parts.join(""));
      arrays.#parts[name as ArrayName] = [...parts];
    }
    return arrays;
  }

  get length(): number {
    return this.#length;
  }

  add({ token, logprob, top }: TextLogprob): void {
    const element = { text_offset: this.#offset, token_logprobs: logprob, tokens: token, top_logprobs: top };
    for (const [name, value] of Object.entries(element)) {
      const parts = this.#parts[name as ArrayName];
      const json = JSON.stringify(value);
      this.#length += json.length + 1;
      parts.push(parts.length === 0 ? json : `,${json}`);
    }
    this.#offset += Array.from(token).length;
  }

  /** The arrays since the last call. Offsets go on. */
  take(): string {
    const { text_offset, token_logprobs, tokens, top_logprobs } = this.#parts;
    const list = (parts: string[]) => `[${parts.splice(0).join("")}]`;
    this.#length = 0;
    const arrays: Record<ArrayName, string> = {
      text_offset: list(text_offset),
      token_logprobs: list(token_logprobs),
      tokens: list(tokens),
      top_logprobs: list(top_logprobs),
    };
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
