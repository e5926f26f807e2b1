// The length fields of a request as the text layer's rules: max_tokens (or max_completion_tokens) and
// truncate_prompt_tokens against the model's context. What does not fit is refused there, with the numbers.
import { ServiceError } from "../../errors/service-error.ts";
import type { LengthRules } from "../../text/prompt-length.ts";

export interface LengthFields {
  max_completion_tokens?: number | null | undefined;
  max_tokens?: number | null | undefined;
  truncate_prompt_tokens?: bigint | null | undefined;
}

export function lengthRules(fields: LengthFields, contextLength: number): LengthRules {
  const maxTokensParam = (fields.max_completion_tokens ?? null) === null ? "max_tokens" : "max_completion_tokens";
  const maxTokens = fields[maxTokensParam] ?? null;
  if (maxTokens !== null && maxTokens < 1) {
    throw new ServiceError("invalid_value", `${maxTokensParam} must be at least 1, got ${maxTokens}.`, {
      param: maxTokensParam,
    });
  }
  const truncate = fields.truncate_prompt_tokens ?? null;
  return {
    contextLength,
    maxTokens,
    maxTokensParam,
    truncatePromptTokens: truncate === null ? null : Number(truncate),
  };
}
