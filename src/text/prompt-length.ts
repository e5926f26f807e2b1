// Limits the length of prompts. A prompt that does not fit is refused with the numbers, never cut silently. Only
// truncate_prompt_tokens cuts it, on the side that truncation_side names.

import { PromptError } from "./prompt-error.ts";

export interface LengthRules {
  /** Prompt plus output, in tokens. */
  contextLength: number;
  /** Output tokens the request asks for; null = as many as fit. */
  maxTokens: number | null;
  /** The field that set `maxTokens`, for errors (default "max_tokens"). */
  maxTokensParam?: string;
  /** null = no truncation; -1 = as much as fits; n = n tokens. */
  truncatePromptTokens: number | null;
  /** The side to cut (default "left", which keeps the end). */
  truncationSide?: "left" | "right";
}

/** Extra tokens to read, because text around a cut is tokenised differently. */
const CUT_MARGIN = 64;

/** Prompt tokens that leave room for the requested output. Refuses rules that no prompt can satisfy. */
export function promptRoom(rules: LengthRules): number {
  const { contextLength, maxTokens, truncatePromptTokens: truncate } = rules;
  const param = rules.maxTokensParam ?? "max_tokens";
  if (maxTokens !== null && maxTokens > contextLength) {
    const message = `${param} (${maxTokens}) is larger than the context length of ${contextLength} tokens: ask for fewer.`;
    throw new PromptError("invalid_max_tokens", param, message);
  }
  const room = contextLength - (maxTokens ?? 0);
  if (truncate !== null && truncate > room) {
    const message =
      `truncate_prompt_tokens (${truncate}) is larger than the ${room} tokens that the context length ` +
      `(${contextLength}) leaves beside ${maxTokens ?? 0} output tokens.`;
    throw new PromptError("invalid_truncation", "truncate_prompt_tokens", message);
  }
  return room;
}

/** Keeps texts that cannot fit away from the tokenizer: no token stands for more than `longestToken` bytes. */
export function boundText(text: string, rules: LengthRules, longestToken: number): string {
  const room = promptRoom(rules);
  if (rules.truncatePromptTokens === null) {
    if (text.length <= room * longestToken) return text;
    const found = `${text.length} characters, more than the ${room * longestToken} that ${room} input tokens can hold`;
    throw tooLong("input_text", rules, found);
  }
  const looked = (room + CUT_MARGIN) * longestToken;
  if (text.length <= looked) return text;
  return rules.truncationSide === "right" ? text.slice(0, looked) : wholeCharacters(text, text.length - looked);
}

/** Counting stops at this many prompt tokens. Longer prompts are refused anyway. */
export function countedTokens({ contextLength }: LengthRules): number {
  return 2 * contextLength;
}

/** The prompt's tokens after truncation. Throws if there are none or too many. */
export function fitTokens(ids: readonly number[], rules: LengthRules): number[] {
  const room = promptRoom(rules);
  const truncate = rules.truncatePromptTokens;
  const keep = truncate === null ? ids.length : truncate < 0 ? room : truncate;
  const kept = rules.truncationSide === "right" ? ids.slice(0, keep) : ids.slice(Math.max(0, ids.length - keep));
  if (kept.length === 0) {
    throw new PromptError("empty_prompt", null, "The prompt is empty: there must be at least one prompt token.");
  }
  // Without a requested length, at least one output token must fit.
  if (kept.length > room || (rules.maxTokens === null && kept.length >= rules.contextLength)) {
    const counted = countedTokens(rules);
    const found = kept.length > counted ? `more than ${counted}` : kept.length;
    throw tooLong("input_tokens", rules, `${found} input tokens`);
  }
  return kept;
}

/** Uses vLLM's wording, because clients look for "maximum context length". */
function tooLong(param: string, { contextLength, maxTokens }: LengthRules, found: string): PromptError {
  const message =
    `This model's maximum context length is ${contextLength} tokens. However, you requested ` +
    `${maxTokens ?? "at least 1"} output tokens and your prompt contains ${found}. ` +
    "Please shorten the prompt or request fewer output tokens.";
  return new PromptError("context_length_exceeded", param, message);
}

export interface BudgetSources {
  contextLength: number;
  promptTokens: number;
  /** From the request. */
  maxTokens: number | null;
  /** From the model's generation_config.json; used when the request sets none. */
  defaultMaxTokens?: number | null;
}

/** Output tokens a request may use. */
export function outputBudget(sources: BudgetSources): number {
  const wanted = sources.maxTokens ?? sources.defaultMaxTokens ?? Number.POSITIVE_INFINITY;
  return Math.min(sources.contextLength - sources.promptTokens, wanted);
}

/** The text after `from`, without half a character at its start. */
function wholeCharacters(text: string, from: number): string {
  const isLow = (text.charCodeAt(from) & 0xfc00) === 0xdc00;
  return text.slice(isLow ? from + 1 : from);
}
