// What the replies of all dialects have in common: usage, ends, log-probabilities.
import { type Static, Type } from "typebox";
import type { Config } from "../../config/options.ts";
import { inTurns } from "../../pacing/turns.ts";
import type { SampledToken, TokenLogprobs } from "../../sampling/token-logprobs.ts";
import { type TokenText, TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { ModelLease } from "../models/model-registry.ts";
import { nullable } from "../schema/body.ts";
import type { SharedFields } from "./fields.schema.ts";

export const Usage = Type.Object(
  {
    prompt_tokens: Type.Integer(),
    total_tokens: Type.Integer(),
    completion_tokens: Type.Integer(),
    prompt_tokens_details: Type.Optional(nullable(Type.Object({ cached_tokens: Type.Integer() }))),
    completion_tokens_details: Type.Optional(Type.Object({ reasoning_tokens: Type.Integer() })),
  },
  { title: "Usage", additionalProperties: false },
);

const Logprob = Type.Object({
  token: Type.String(),
  logprob: Type.Number({ minimum: -9999 }),
  bytes: Type.Array(Type.Integer()),
});

export const TokenLogprob = Type.Intersect([Logprob, Type.Object({ top_logprobs: Type.Array(Logprob) })]);

export const PromptLogprobs = nullable(
  Type.Array(
    nullable(
      Type.Record(
        Type.String(),
        Type.Object({ logprob: Type.Number({ minimum: -9999 }), rank: Type.Integer(), decoded_token: Type.String() }),
      ),
    ),
    { description: "One entry per prompt token, the first null; keys are token ids." },
  ),
);

// What every reply to one request shares, in every dialect, streamed or whole: id, names, usage. Computed once per request.

export interface ReplyFacts {
  /** chatcmpl-… or cmpl-… */
  id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  systemFingerprint: string;
  /** Counted once, however many choices there are. */
  promptTokens: number;
  includeUsage: boolean;
  continuousUsage: boolean;
  /** Put prompt_tokens_details into usage. */
  promptTokensDetails: boolean;
  /** Put completion_tokens_details into usage. */
  reasoningParsed: boolean;
}

/** `own`: what differs between the dialects. */
export function replyFacts(
  { config, systemFingerprint }: { config: Config; systemFingerprint: string },
  body: Pick<SharedFields, "stream" | "stream_options">,
  model: ModelLease,
  own: Pick<ReplyFacts, "id" | "promptTokens" | "reasoningParsed">,
): ReplyFacts {
  const forced = config.enableForceIncludeUsage;
  const wanted = body.stream_options?.include_usage === true || forced;
  return {
    ...own,
    created: Math.floor(Date.now() / 1000),
    model: model.name,
    systemFingerprint,
    includeUsage: body.stream === true && wanted,
    continuousUsage: body.stream_options?.continuous_usage_stats === true || forced,
    promptTokensDetails: config.enablePromptTokensDetails,
  };
}

type WireUsage = Static<typeof Usage>;

/** Tokens: generated, found in the prefix cache, and generated as reasoning. */
export interface UsageCounts {
  completion: number;
  cached: number;
  reasoning: number;
}

export function usageOf(facts: ReplyFacts, counts: UsageCounts): WireUsage {
  const usage: WireUsage = {
    prompt_tokens: facts.promptTokens,
    total_tokens: facts.promptTokens + counts.completion,
    completion_tokens: counts.completion,
    prompt_tokens_details: facts.promptTokensDetails ? { cached_tokens: counts.cached } : null,
  };
  if (facts.reasoningParsed) usage.completion_tokens_details = { reasoning_tokens: counts.reasoning };
  return usage;
}

/** Usage as stream chunks carry it: without null members. */
export function chunkUsage(usage: WireUsage): Partial<WireUsage> {
  const { prompt_tokens_details: details, ...rest } = usage;
  return details === null ? rest : usage;
}

// Log probabilities as replies carry them. Values are floored at -9999, because JSON has no -Infinity.
// Chat form: one entry per token with alternatives; prompt form: one object per position keyed by token id.

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
