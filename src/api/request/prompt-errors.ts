// Maps text-layer errors to client errors. The text layer knows field names but not HTTP statuses.
import type { ErrorCode } from "../../errors/error-table.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { PromptError, type PromptErrorCode } from "../../text/prompt-error.ts";

const CODES: Record<PromptErrorCode, ErrorCode> = {
  invalid_message: "unsupported_content",
  invalid_part_type: "unsupported_content",
  invalid_stop: "invalid_value",
  invalid_bad_words: "invalid_value",
  invalid_truncation: "invalid_value",
  invalid_continuation: "invalid_combination",
  invalid_max_tokens: "context_length_exceeded",
  no_chat_template: "no_chat_template",
  template_error: "template_failed",
  template_busy: "queue_full",
  context_length_exceeded: "context_length_exceeded",
  text_too_long: "body_too_large",
  empty_prompt: "invalid_value",
};

/** Runs text-layer work and converts each PromptError to a client error. */
export async function refusing<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PromptError)) throw error;
    const { param, message } = asTheDialectSays(error);
    throw new ServiceError(CODES[error.code], message, { param, cause: error });
  }
}

/** The wire dialect reports some fields under another name, or none. */
function asTheDialectSays({ code, param, message }: PromptError): Pick<PromptError, "param" | "message"> {
  if (code === "invalid_part_type") return { param: "type", message: `${param}: ${message}` };
  return { param: code === "invalid_bad_words" ? null : param, message };
}
