// What every reply to one request shares, in both dialects, streamed or whole: id, names, usage. Computed once per request.
import type { Static } from "typebox";
import type { Config } from "../../config/options.ts";
import type { SharedFields } from "../request/sampling.schema.ts";
import type { Usage } from "./reply.schema.ts";
import type { ServedModel } from "./served-model.ts";

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
  model: ServedModel,
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
