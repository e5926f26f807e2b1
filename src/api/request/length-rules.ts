// Converts a request's length fields to the text layer's rules: max_tokens or max_completion_tokens,
// truncate_prompt_tokens and truncation_side. The text layer refuses prompts that do not fit the context.
import { ServiceError } from "../../errors/service-error.ts";
import type { LengthRules } from "../../text/prompt-length.ts";

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
    const message = `max_tokens must be at least 1, got ${maxTokens}.`;
    throw new ServiceError("invalid_value", message, { param: "max_tokens" });
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
