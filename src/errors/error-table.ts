// Every error a client can get, in one table: status, the `type` word on the wire, what it means and how to fix it.
// docs/reference/errors.md is generated from this table; a test fails when they differ.

export interface ErrorRow {
  status: number;
  /** `error.type` on the wire. */
  type: string;
  meaning: string;
  fix: string;
  /**
   * Seconds after which sending it again may help, unless the error knows better (Retry-After); "useless": it cannot help,
   * and SDKs are told so (x-should-retry). Every 429 and 503 has one of them.
   */
  repeat?: number | "useless";
}

export const ERRORS = {
  malformed_json: {
    status: 400,
    type: "Bad Request",
    meaning: "The body is not JSON, not UTF-8, not an object, or is nested too deeply.",
    fix: "Send one JSON object. NaN and Infinity are not JSON; use null or leave the field out.",
  },
  unsupported_media_type: {
    status: 400,
    type: "Bad Request",
    meaning: "Content-Type is missing or is not application/json, or Content-Encoding is not one the route knows.",
    fix: "Send `Content-Type: application/json`; gzip is taken only by POST of /v1/preview/training-jobs, sft-training-jobs and models/ID/log.",
  },
  invalid_body: {
    status: 400,
    type: "Bad Request",
    meaning:
      "A required field is missing, or a field has the wrong JSON type or is outside its stated range or enumeration.",
    fix: "`param` is the path of the first offending field; the message lists up to 20 of them.",
  },
  bad_http: {
    status: 400,
    type: "Bad Request",
    meaning: "The bytes on the connection are not HTTP/1.1.",
    fix: "Check the client, and that http:// (not https://) is used on this port.",
  },
  invalid_value: {
    status: 400,
    type: "BadRequestError",
    meaning: "A value is well-formed but not allowed: out of bounds, outside the vocabulary, or over a server limit.",
    fix: "The message states the field and the bound; `param` names the field or is null.",
  },
  invalid_combination: {
    status: 400,
    type: "BadRequestError",
    meaning: "Two fields contradict each other, or a field needs another one.",
    fix: "The message names both fields. Drop one of them or set the missing one.",
  },
  unsupported_content: {
    status: 400,
    type: "BadRequestError",
    meaning:
      "A message carries content that the served model cannot read (images, audio, video) or an unknown part type.",
    fix: 'Send text parts only: a string, or `{"type":"text","text":…}`.',
  },
  no_chat_template: {
    status: 400,
    type: "BadRequestError",
    meaning: "The model's tokenizer defines no chat template and none was supplied.",
    fix: "Send `chat_template`, start the server with `--chat-template FILE`, or use /v1/completions.",
  },
  template_failed: {
    status: 400,
    type: "BadRequestError",
    meaning: "The chat template could not be compiled or rendered for these messages.",
    fix: "Read the message: templates raise errors on purpose, for example for roles out of order.",
  },
  template_refused: {
    status: 400,
    type: "BadRequestError",
    meaning: "This server does not accept chat templates from requests.",
    fix: "Leave `chat_template` out, or start the server with `--trust-request-chat-template`.",
  },
  context_length_exceeded: {
    status: 400,
    type: "BadRequestError",
    meaning: "Prompt plus requested output do not fit the model's context.",
    fix: "Shorten the prompt, lower `max_tokens`, or send `truncate_prompt_tokens`.",
  },
  invalid_constraint: {
    status: 400,
    type: "BadRequestError",
    meaning: "A JSON schema, regular expression, grammar, choice list or structural tag could not be compiled.",
    fix: "The message carries the compiler's reason. Unsupported keywords are refused, never ignored.",
  },
  contradictory_controls: {
    status: 400,
    type: "BadRequestError",
    meaning:
      "At some point of the output no token was left: the constraint, `allowed_token_ids`, `bad_words` and `min_tokens` together forbid every one.",
    fix: "Relax or drop one of the fields the message names. It is found while generating; in a stream it is an error event.",
  },
  constraint_failed: {
    status: 400,
    type: "BadRequestError",
    meaning: "The constraint could not be followed further: too ambiguous, or not expressible in the model's tokens.",
    fix: "Make the grammar less ambiguous. It is found while generating; in a stream it is an error event.",
  },
  tool_choice_unavailable: {
    status: 400,
    type: "BadRequestError",
    meaning: "`tool_choice` asks for parsed tool calls, which this server was not started with.",
    fix: 'Use "none", or start the server with `--enable-auto-tool-choice --tool-call-parser NAME`.',
  },
  priority_unavailable: {
    status: 400,
    type: "BadRequestError",
    meaning: "A non-zero `priority` was sent, but the server schedules first come, first served.",
    fix: "Send `priority: 0`, or start the server with `--scheduling-policy priority`.",
  },
  invalid_adapter_request: {
    status: 400,
    type: "InvalidUserInput",
    meaning:
      "The adapter request is incomplete, the name is taken, the adapter's rank is too large, or loaded adapters have every slot.",
    fix: "Send both `lora_name` and `lora_path`; use `load_inplace: true` to replace a loaded adapter. Without a slot, unload an adapter or raise `--max-loras`.",
  },
  missing_token: {
    status: 401,
    type: "AuthenticationError",
    meaning: "The Authorization header is missing or is not of the form `Bearer TOKEN`.",
    fix: "Send `Authorization: Bearer TOKEN`. Make a token with `bin/flywheel tokens create`.",
  },
  invalid_token: {
    status: 401,
    type: "AuthenticationError",
    meaning: "The token is unknown, revoked or expired.",
    fix: "Make a new token with `bin/flywheel tokens create`.",
  },
  insufficient_scope: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "The token is valid but lacks the scope this route needs.",
    fix: "Use a token that has the scope named in the message.",
  },
  model_not_found: {
    status: 404,
    type: "NotFoundError",
    meaning:
      "No served model, loaded adapter or policy has this name, or the policy's base model is not served any more.",
    fix: "GET /v1/models lists the names. Leave `model` out to get the base model.",
  },
  not_found: {
    status: 404,
    type: "NotFoundError",
    meaning: "There is nothing at this path.",
    fix: "GET /openapi.json lists the routes.",
  },
  unknown_training_model: {
    status: 404,
    type: "NotFoundError",
    meaning: "No trainable model of this token's owner has this id.",
    fix: "GET /v1/preview/models lists the models of this token.",
  },
  unknown_training_job: {
    status: 404,
    type: "NotFoundError",
    meaning: "No training job of this token's owner has this id, or an event cursor is not an event of the job.",
    fix: "GET /v1/preview/training-jobs lists the jobs of this token; read events from the start without `after`.",
  },
  unknown_checkpoint: {
    status: 404,
    type: "NotFoundError",
    meaning: "The model has no such step, or it was deleted.",
    fix: "GET /v1/preview/models/ID/checkpoints lists the steps.",
  },
  method_not_allowed: {
    status: 405,
    type: "MethodNotAllowedError",
    meaning: "The path exists, but not for this method.",
    fix: "The `Allow` header lists the methods.",
  },
  request_timeout: {
    status: 408,
    type: "RequestTimeoutError",
    meaning: "The request did not arrive in time: its headers within 60 s, all of it within 300 s.",
    fix: "Send headers and body without long pauses.",
  },
  model_exists: {
    status: 409,
    type: "ConflictError",
    meaning: "A model with this entity, project and name exists already.",
    fix: "Choose another name, or send `return_existing: true` to get the existing one.",
  },
  name_taken: {
    status: 409,
    type: "ConflictError",
    meaning: "The base model or a loaded adapter answers to this name, so a policy of this name could not be asked.",
    fix: "Choose another name.",
  },
  model_busy: {
    status: 409,
    type: "ConflictError",
    meaning: "The model has open training jobs, which this change would get in the way of.",
    fix: "Wait for the jobs or cancel them, then send the request again.",
  },
  damaged_checkpoint: {
    status: 409,
    type: "ConflictError",
    meaning: "The files of the step are damaged.",
    fix: "Use another step; delete this one.",
  },
  body_too_large: {
    status: 413,
    type: "RequestTooLargeError",
    meaning:
      "The body is larger than the route accepts, or has more than 200,000 values; in training data, one trajectory or example has more than 2,000,000, or there are more than 1,000,000 of them.",
    fix: "Send less, or start the server with a larger `--max-body-bytes` (`--max-training-body-bytes`). In training data, leave out what is not trained: `top_logprobs`, `metadata`, `logs`.",
  },
  invalid_training_request: {
    status: 422,
    type: "UnprocessableEntityError",
    meaning: "A field of a training request is missing, of the wrong type, out of bounds, or contradicts another one.",
    fix: "`detail` lists up to 100 problems with their paths: group, trajectory and element for trajectories.",
  },
  unknown_base_model: {
    status: 422,
    type: "UnprocessableEntityError",
    meaning: "The base model is not one this server can train.",
    fix: "GET /v1/preview/base-models lists them.",
  },
  adapter_rank_too_large: {
    status: 422,
    type: "UnprocessableEntityError",
    meaning: "The model's adapters have a larger rank than this server serves, so it can be neither asked nor trained.",
    fix: "The operator starts the server with a larger `--max-lora-rank`. Step 0, the unchanged model, answers as it is.",
  },
  idempotency_key_reused: {
    status: 422,
    type: "UnprocessableEntityError",
    meaning: "The Idempotency-Key was used before with another body.",
    fix: "Use a fresh key for a new job; repeat a key only with exactly the same body.",
  },
  quota_exceeded: {
    status: 429,
    type: "RateLimitError",
    meaning: "The token's owner has used up the disk or the number of open jobs the operator allows.",
    fix: "Delete checkpoints or models, or wait for jobs to finish. The operator can raise the limits.",
    repeat: "useless",
  },
  queue_full: {
    status: 429,
    type: "RateLimitError",
    meaning:
      "All slots are busy and the waiting line is full, or 64 requests wait for a chat template of their own to be rendered.",
    fix: "Wait `Retry-After` seconds and send it again; SDKs do so by themselves. The operator can raise `--max-queue`.",
    repeat: 1,
  },
  headers_too_large: {
    status: 431,
    type: "Bad Request",
    meaning: "The request headers are larger than the server accepts (16 KiB).",
    fix: "Send fewer or shorter headers.",
  },
  internal_error: {
    status: 500,
    type: "InternalServerError",
    meaning: "A fault in the server. The log has the details under the request id.",
    fix: "Report it with the `x-request-id` of the response.",
    repeat: "useless",
  },
  broken_adapter: {
    status: 500,
    type: "InternalServerError",
    meaning: "The adapter's files are damaged, do not fit the model, or use what is not supported.",
    fix: "The message names the file or tensor: save the adapter again, for this base model.",
    repeat: "useless",
  },
  engine_failed: {
    status: 500,
    type: "InternalServerError",
    meaning: "The engine ended this request with an error; other requests go on.",
    fix: "The log has the reason under the request id.",
    repeat: "useless",
  },
  not_supported: {
    status: 501,
    type: "NotImplementedError",
    meaning: "The running engine or model does not offer this feature.",
    fix: "See docs/reference/wire.md for what this server offers.",
    repeat: "useless",
  },
  shutting_down: {
    status: 503,
    type: "ServiceUnavailableError",
    meaning: "The server is draining and takes no new requests.",
    fix: "Send the request again after `Retry-After` seconds, or to another server.",
    repeat: 5,
  },
  no_adapter_slot: {
    status: 503,
    type: "ServiceUnavailableError",
    meaning: "Every adapter slot of the engine is in use, by running requests or by adapters that the operator loaded.",
    fix: "Send the request again after `Retry-After` seconds. The operator can raise `--max-loras` or unload an adapter.",
    repeat: 1,
  },
  storage_full: {
    status: 507,
    type: "InsufficientStorageError",
    meaning: "The server's disk is full; nothing was accepted.",
    fix: "Free space on the server's data directory, then send the request again.",
  },
  engine_dead: {
    status: 503,
    type: "ServiceUnavailableError",
    meaning: "The engine stopped and could not be restarted.",
    fix: "Restart the server; the log says why the engine stopped. If something restarts it, send the request again after `Retry-After` seconds.",
    repeat: 10, // a supervisor needs about that long to start the server again
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;
