// The body of a chat request from the settings and the conversation.

import { constraintFields } from "./constraint.ts";
import { jsonError } from "./json-error.ts";
import type { Body, Message } from "./message.ts";
import { constraintOf, type Settings } from "./settings.ts";
import { toolFields } from "./tools.ts";

/** `turns` end with what the user or a tool says. `seed`: chosen for this request. Throws a sentence. */
export function chatBody(settings: Settings, model: string, turns: readonly Message[], seed: number): Body {
  const system = settings.system.trim() === "" ? [] : [{ role: "system", content: settings.system }];
  return {
    model,
    messages: [...system, ...turns],
    ...(settings.n > 1 ? { n: settings.n } : {}),
    seed,
    ...settings.params,
    ...constraintFields(settings.output, constraintOf(settings)),
    ...toolFields(settings.tools),
    ...logprobFields(settings),
    ...extraFields(settings.extra),
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
}

function logprobFields({ alternatives }: Settings): Body {
  const ids = { return_token_ids: true };
  if (alternatives === 0) return ids;
  return { logprobs: true, top_logprobs: alternatives, return_tokens_as_token_ids: true, ...ids };
}

/** Throws a sentence if the text is not a JSON object. */
export function extraFields(text: string): Body {
  if (text.trim() === "") return {};
  const error = jsonError(text);
  if (error !== null) throw new Error(`More fields: ${error.message}`);
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error("More fields must be one JSON object.");
  }
  return value as Body;
}

/** The fields of a chat request that a continuation keeps: how to sample, not what to say. */
const KEPT = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "presence_penalty",
  "frequency_penalty",
  "stop",
  "stop_token_ids",
  "logit_bias",
];

/** Goes on after `tokenIds`, the prompt and the part of the reply that stays. */
export function continuationBody(chat: Body, tokenIds: readonly number[], already: number): Body {
  const kept = Object.fromEntries(KEPT.filter((name) => chat[name] !== undefined).map((name) => [name, chat[name]]));
  const most = typeof chat.max_tokens === "number" ? { max_tokens: Math.max(1, chat.max_tokens - already) } : {};
  const top = typeof chat.top_logprobs === "number" ? { logprobs: chat.top_logprobs } : {};
  return {
    model: chat.model,
    prompt: tokenIds,
    seed: chat.seed,
    ...kept,
    ...{ max_tokens: 256, ...most },
    ...top,
    return_tokens_as_token_ids: true,
    return_token_ids: true,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
}
