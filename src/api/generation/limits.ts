// Bounds of a request: lengths, choices, log-probabilities, thinking, and fields that need or exclude each other.
import { invalidCombination, invalidValue, ServiceError } from "../../errors/service-error.ts";
import type { ThinkingLimit } from "../../sampling/thinking-budget.ts";
import type { LengthRules } from "../../text/prompt-length.ts";
import { type ReasoningState, type ReasoningStyle, reasoningState } from "../../text/reasoning.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { MAX_VALUES } from "../http/body.ts";
import type { SharedFields } from "./fields.schema.ts";

// Converts a request's length fields to the text layer's rules: max_tokens or max_completion_tokens,
// truncate_prompt_tokens and truncation_side. The text layer refuses prompts that do not fit the context.

export interface LengthFields {
  max_completion_tokens?: number | null | undefined;
  max_tokens?: number | null | undefined;
  truncate_prompt_tokens?: bigint | null | undefined;
  truncation_side?: "left" | "right" | null | undefined;
}

export function lengthRules(fields: LengthFields, contextLength: number): LengthRules {
  const maxTokensParam = (fields.max_completion_tokens ?? null) === null ? "max_tokens" : "max_completion_tokens";
  const maxTokens = fields[maxTokensParam] ?? null;
  if (maxTokens !== null && maxTokens < 1) {
    // Both fields set the same budget. Errors call it max_tokens.
    throw invalidValue(`max_tokens must be at least 1, got ${maxTokens}.`, "max_tokens");
  }
  const truncate = fields.truncate_prompt_tokens ?? null;
  return {
    contextLength,
    maxTokens,
    maxTokensParam,
    truncatePromptTokens: truncate === null ? null : Number(truncate),
    truncationSide: fields.truncation_side ?? "left",
  };
}

// Limits on log probabilities: per token (--max-logprobs) and per reply.

/** A `count` of -1 asks for the whole vocabulary. `param` is the field that the error names. */
export function checkLogprobCount(count: number | null, cap: number, vocabSize: number, param: string): void {
  if (count === null || cap === -1) return;
  const wanted = count === -1 ? vocabSize : count;
  if (wanted > cap) {
    const message = `${wanted} log probabilities per token were requested; this server gives at most ${cap} (--max-logprobs).`;
    throw invalidValue(message, param);
  }
}

/** Limit for a reply that is not streamed: about 200 MB of text. Streams do not collect log probabilities. */
export const MOST_IN_A_REPLY = 2_000_000;

/** Of one log probability in a reply, as JSON. Tokens of more than a few bytes take more. */
export const LOGPROB_BYTES = 100;

export interface LogprobAmount {
  choices: number;
  /** Per choice. */
  maxTokens: number;
  promptTokens: number;
  /** Per token, besides the token itself; null = none, -1 = the whole vocabulary. */
  top: number | null;
  prompt: number | null;
}

/** The most log probabilities that a prompt and its choices can produce. */
export function logprobAmount(of: LogprobAmount, vocabSize: number): number {
  const perToken = (count: number | null) => (count === null ? 0 : 1 + (count === -1 ? vocabSize : count));
  return of.choices * of.maxTokens * perToken(of.top) + of.promptTokens * perToken(of.prompt);
}

/** Refuses a reply that would be too large to build, before computing it. */
export function checkLogprobAmount(amount: number, param: string): void {
  if (amount > MOST_IN_A_REPLY) {
    const message =
      `The reply could hold ${amount} log probabilities, more than the ${MOST_IN_A_REPLY} that one may: ` +
      "ask for fewer choices, tokens or log probabilities, or for a stream.";
    throw invalidValue(message, param);
  }
}

// Converts thinking_token_budget to the limit that the sampler enforces. The reasoning parser supplies the markers.

/** null = no limit. `state` says whether the prompt leaves a thought open. */
export function thinkingLimit(
  budget: number | null | undefined,
  style: ReasoningStyle | null,
  state: ReasoningState,
  tokenizer: Tokenizer,
): ThinkingLimit | null {
  if (budget === undefined || budget === null || budget === -1) return null;
  if (style === null) {
    const message = "thinking_token_budget needs a server that parses reasoning (--reasoning-parser).";
    throw invalidCombination(message, "thinking_token_budget");
  }
  if (state === "closed") return null;
  const [startIds, endIds] = [tokenizer.encode(style.start), tokenizer.encode(style.end)];
  return { startIds, endIds, maxTokens: budget, open: state === "open" };
}

/** The limit for a raw prompt. Its text shows whether it leaves a thought open. */
export function thinkingLimitAfter(
  prompt: () => string,
  budget: number | null | undefined,
  { reasoning, text }: { reasoning: ReasoningStyle | null; text: { tokenizer: Tokenizer } },
): ThinkingLimit | null {
  const isLimited = (budget ?? -1) !== -1 && reasoning !== null;
  const state = isLimited
    ? reasoningState(reasoning, { prompt: prompt(), continued: null, disabled: false })
    : "optional";
  return thinkingLimit(budget, reasoning, state, text.tokenizer);
}

// Checks that a prompt's token ids are in the model's vocabulary.
export function checkTokenIds(ids: readonly number[], vocabSize: number, param: string): void {
  const outside = ids.find((id) => id < 0 || id >= vocabSize);
  if (outside !== undefined) {
    throw invalidValue(`Token id ${outside} is out of vocabulary: this model has ${vocabSize} tokens.`, param);
  }
}

// Reads n, the number of choices, and checks its bounds.

export const MAX_CHOICES = 16384;

export function readChoiceCount(n: number | null | undefined): number {
  const count = n ?? 1;
  if (count < 1 || count > MAX_CHOICES) {
    throw invalidValue(`n must be at least 1 and at most ${MAX_CHOICES}, got ${count}.`);
  }
  return count;
}

// Rules for the fields that chat and text completions share. sampling.ts has the bounds of sampling fields.

/** Other fields accept numbers written as strings; these do not. `source` is the body before parsing. */
export function checkLogprobSpelling(source: Record<string, unknown>): void {
  for (const param of ["top_logprobs", "prompt_logprobs"]) {
    if (typeof source[param] === "string") throw invalidValue(`${param} must be an integer, not a string.`, param);
  }
}

/** `options` is stream_options as sent, including unknown keys. */
export function checkStream(body: Pick<SharedFields, "stream" | "prompt_logprobs">, options: unknown): void {
  if (Object.keys(options ?? {}).length > 0 && body.stream !== true) {
    throw invalidCombination("stream_options needs stream: true.", "stream_options");
  }
  const param = "prompt_logprobs";
  const count = body.prompt_logprobs ?? 0;
  if (count !== 0 && body.stream === true) {
    throw invalidCombination(`${param} is not available with stream: true.`, param);
  }
  if (count < -1) throw invalidValue(`${param} must be 0 or more, or -1 for the whole vocabulary.`, param);
}

/** An empty stop string would match everywhere. */
export function checkStops(stop: SharedFields["stop"]): void {
  if ([stop].flat().includes("")) throw invalidValue("stop must not contain an empty string.");
}

export function checkPriority({ priority }: Pick<SharedFields, "priority">, policy: "priority" | "fcfs"): void {
  if (policy === "fcfs" && (priority ?? 0n) !== 0n) {
    const message = "priority must be 0: this server schedules first come, first served.";
    throw new ServiceError("priority_unavailable", message, { param: "priority" });
  }
}

// Fields that a request gives once and that count for each of its prompts or conversations. The engine gets them with every one,
// so a small body could make as many copies as it has prompts. They may hold as much together as one body may.

type Repeated = Partial<
  Pick<SharedFields, "logit_bias" | "stop" | "stop_token_ids" | "allowed_token_ids" | "logprob_token_ids" | "bad_words">
>;

/** `more`: further values that each prompt gets. */
export function checkRepeated(body: Repeated, prompts: number, more = 0): void {
  const texts = [body.stop ?? [], body.bad_words ?? []].flat();
  const ids = [body.stop_token_ids, body.allowed_token_ids, body.logprob_token_ids];
  const each =
    more +
    Object.keys(body.logit_bias ?? {}).length +
    ids.reduce((sum, list) => sum + (list ?? []).length, 0) +
    texts.reduce((sum, text) => sum + text.length, 0);
  if (prompts === 1 || each * prompts <= MAX_VALUES) return;
  const message =
    `logit_bias, bad_words, stop and lists of token ids have ${each} values and characters, for each of ${prompts} prompts. ` +
    `Together they may have ${MAX_VALUES}: send fewer prompts in one request.`;
  throw invalidValue(message);
}
