// How long a prompt may be. A prompt that does not fit is an error with numbers, never cut silently; cutting happens
// only where truncate_prompt_tokens asks for it, and keeps the end.

import { PromptError } from "./prompt-error.ts";

export interface LengthRules {
  /** Prompt plus output, in tokens. */
  contextLength: number;
  /** Output tokens the request asks for; null = as many as fit. */
  maxTokens: number | null;
  /** The field `maxTokens` came from, for errors (default "max_tokens"). */
  maxTokensParam?: string;
  /** null = no truncation; -1 = as much as fits; n = n tokens. */
  truncatePromptTokens: number | null;
}

/** Tokens around a cut may come out differently than in the whole text; this many more are looked at. */
const CUT_MARGIN = 64;

/** Prompt tokens that leave room for the output asked for. Refuses rules that no prompt can satisfy. */
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

/** Keeps texts that cannot possibly fit away from the tokenizer: no token stands for more than `longestToken` bytes. */
export function boundText(text: string, rules: LengthRules, longestToken: number): string {
  const room = promptRoom(rules);
  if (rules.truncatePromptTokens === null) {
    // By the whole context: what the output leaves of it is said with exact numbers, after tokenising.
    if (text.length <= rules.contextLength * longestToken) return text;
    throw new PromptError(
      "context_length_exceeded",
      "input_text",
      `The prompt of ${text.length} characters is longer than the context length of ${rules.contextLength} tokens ` +
        "can be: shorten it.",
    );
  }
  const looked = (room + CUT_MARGIN) * longestToken;
  if (text.length <= looked) return text;
  return wholeCharacters(text, text.length - looked);
}

/** A prompt that is not cut is tokenised no further: it is refused anyway, and its tokens need not be counted to the last. */
export function countedTokens({ contextLength }: LengthRules): number {
  return 2 * contextLength;
}

/** The prompt's tokens after truncation; an error when they are none or too many. */
export function fitTokens(ids: readonly number[], rules: LengthRules): number[] {
  const room = promptRoom(rules);
  const truncate = rules.truncatePromptTokens;
  const keep = truncate === null ? ids.length : truncate < 0 ? room : truncate;
  const kept = ids.slice(Math.max(0, ids.length - keep));
  if (kept.length === 0) {
    throw new PromptError("empty_prompt", null, "The prompt is empty: there must be at least one prompt token.");
  }
  // Without a requested length at least one output token must fit.
  if (kept.length > room || (rules.maxTokens === null && kept.length >= rules.contextLength)) {
    const counted = countedTokens(rules);
    const found = kept.length > counted ? `more than ${counted}` : kept.length;
    throw new PromptError(
      "context_length_exceeded",
      "input_tokens",
      `The context length is ${rules.contextLength} tokens. The prompt has ${found} tokens, and ` +
        `${rules.maxTokens ?? "at least 1"} output tokens were asked for: shorten the messages or ask for fewer.`,
    );
  }
  return kept;
}

export interface BudgetSources {
  contextLength: number;
  promptTokens: number;
  /** What the request asks for. */
  maxTokens: number | null;
  /** What the model's generation_config.json says, used when the request says nothing. */
  defaultMaxTokens?: number | null;
}

/** Output tokens a request may use. */
export function outputBudget(sources: BudgetSources): number {
  const wanted = sources.maxTokens ?? sources.defaultMaxTokens ?? Number.POSITIVE_INFINITY;
  return Math.min(sources.contextLength - sources.promptTokens, wanted);
}

/** The end of the text from there on, without half a character at its start. */
function wholeCharacters(text: string, from: number): string {
  const isLow = (text.charCodeAt(from) & 0xfc00) === 0xdc00;
  return text.slice(isLow ? from + 1 : from);
}
