// Log probabilities as replies carry them. Values are floored at -9999, because JSON has no -Infinity.
// Chat form: one entry per token with alternatives; prompt form: one object per position keyed by token id.
import type { Static } from "typebox";
import { inTurns } from "../../pacing/turns.ts";
import type { SampledToken, TokenLogprobs } from "../../sampling/token-logprobs.ts";
import { type TokenText, TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { Logprob, TokenLogprob } from "./reply.schema.ts";

const LOGPROB_FLOOR = -9999;

export type WireLogprob = Static<typeof Logprob>;
export type WireTokenLogprob = Static<typeof TokenLogprob>;

export function floored(logprob: number): number {
  return Number.isNaN(logprob) ? LOGPROB_FLOOR : Math.max(logprob, LOGPROB_FLOOR);
}

/**
 * One content entry; moves the walk on. `top` is the number of alternatives. The sampled token is always the first of them,
 * even if it is not among the most likely.
 */
export function contentEntry(walk: TokenTextWalk, sampled: SampledToken, top: number): WireTokenLogprob {
  const { id, logprobs } = sampled;
  const others = logprobs === null || top === 0 ? null : otherEntries(walk, id, logprobs, top);
  const own = entry(walk.advance(id), floored(logprobs?.logprob ?? LOGPROB_FLOOR));
  return { ...own, top_logprobs: others === null ? [] : [own, ...others] };
}

function otherEntries(walk: TokenTextWalk, id: number, logprobs: TokenLogprobs, top: number): WireLogprob[] {
  const entries: WireLogprob[] = [];
  const wanted = (top < 0 ? logprobs.topIds.length : top) - 1;
  for (let i = 0; i < logprobs.topIds.length && entries.length < wanted; i++) {
    const other = logprobs.topIds[i]!;
    if (other !== id) entries.push(entry(walk.describe(other), floored(logprobs.topLogprobs[i]!)));
  }
  return entries;
}

function entry(text: TokenText, logprob: number): WireLogprob {
  return { token: text.token, logprob, bytes: text.bytes };
}

/**
 * prompt_logprobs as JSON text. An object could not keep the order that clients expect, because its keys look like numbers:
 * the prompt's own token first, then the most likely ones.
 */
export function promptLogprobsJson(
  tokenizer: Tokenizer,
  promptTokenIds: readonly number[],
  logprobs: readonly (TokenLogprobs | null)[],
): Promise<string> {
  return inTurns(promptPositions(new TokenTextWalk(tokenizer), promptTokenIds, logprobs));
}

/** Entries between two pauses: about a millisecond. */
const ENTRIES_PER_STEP = 1024;

function* promptPositions(
  walk: TokenTextWalk,
  promptTokenIds: readonly number[],
  logprobs: readonly (TokenLogprobs | null)[],
): Generator<undefined, string> {
  // Joined at the end: text that grows by `+` is copied together when it is used, which takes far longer.
  const parts: string[] = [];
  let entries = 0;
  for (const [i, id] of promptTokenIds.entries()) {
    const here = logprobs[i] ?? null;
    if (i > 0) parts.push(",");
    if (here === null) parts.push("null");
    else {
      const member = (token: number, logprob: number, rank: number | null) =>
        `"${token}":${JSON.stringify({ logprob: floored(logprob), rank, decoded_token: walk.text(token) })}`;
      parts.push(`{${member(id, here.logprob, here.rank)}`);
      for (const [k, other] of here.topIds.entries()) {
        if (other !== id) parts.push(`,${member(other, here.topLogprobs[k]!, k + 1)}`);
        if (++entries % ENTRIES_PER_STEP === 0) yield;
      }
      parts.push("}");
    }
    walk.advance(id);
    if (++entries % ENTRIES_PER_STEP === 0) yield;
  }
  return `[${parts.join("")}]`;
}

/**
 * JSON of an object whose `raw` members are JSON text already, perhaps megabytes of it. The parts are joined with `+`, which
 * copies nothing, unlike `join`.
 */
export function jsonWith(
  object: Readonly<Record<string, unknown>>,
  raw: Readonly<Record<string, string | null>>,
): string {
  let members = "";
  for (const [key, value] of Object.entries(object)) {
    const text = raw[key] ?? JSON.stringify(value);
    if (text !== undefined) members += `${members === "" ? "" : ","}${JSON.stringify(key)}:${text}`;
  }
  return `{${members}}`;
}
