// Errors on the way from messages to prompt tokens. Each has a code, from which the HTTP layer chooses a status. Messages
// say what to change.

export type PromptErrorCode =
  | "invalid_message"
  | "invalid_part_type"
  | "invalid_stop"
  | "invalid_bad_words"
  | "invalid_truncation"
  | "invalid_continuation"
  | "invalid_max_tokens"
  | "no_chat_template"
  | "template_error"
  | "template_busy"
  | "context_length_exceeded"
  | "text_too_long"
  | "empty_prompt";

export class PromptError extends Error {
  override name = "PromptError";
  readonly code: PromptErrorCode;
  /** Path of the wrong field ("messages.0.content"), or null. */
  readonly param: string | null;

  constructor(code: PromptErrorCode, param: string | null, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.param = param;
  }
}

/** A chat template that cannot be parsed, fails, raises, or exceeds its limits. */
export class TemplateError extends PromptError {
  override name = "TemplateError";

  constructor(message: string, options?: ErrorOptions) {
    super("template_error", null, message, options);
  }
}
