// thinking_token_budget → the limit that the sampler keeps. The markers come from the server's reasoning parser.
import { ServiceError } from "../../errors/service-error.ts";
import type { ThinkingLimit } from "../../sampling/thinking-budget.ts";
import type { ReasoningState, ReasoningStyle } from "../../text/reasoning/reasoning-style.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";

/** `state`: where the prompt leaves the reasoning. null = no limit. */
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
