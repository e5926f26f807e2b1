// Converts thinking_token_budget to the limit that the sampler enforces. The reasoning parser supplies the markers.
import { ServiceError } from "../../errors/service-error.ts";
import type { ThinkingLimit } from "../../sampling/thinking-budget.ts";
import { type ReasoningState, type ReasoningStyle, reasoningState } from "../../text/reasoning/reasoning-style.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";

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
    throw new ServiceError("invalid_combination", message, { param: "thinking_token_budget" });
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
