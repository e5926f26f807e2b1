// Every error a client can get: its status, its `type` on the wire, what it means and how to fix it.
// docs/reference/errors.md is generated from this table.

// One row of the error table.
export interface ErrorRow {
  status: number;
  /** `error.type` on the wire. */
  type: string;
  meaning: string;
  fix: string;
  /**
   * Seconds to wait before a retry (Retry-After), unless the error itself gives a better number. "useless" means that a
   * retry cannot help; SDKs are told so (x-should-retry: false). Every 429 and 503 sets this field.
   */
  repeat?: number | "useless";
}

// The errors of callers whom the server does not know, or who may not do what they ask.

const UNAUTHORIZED = { status: 401, type: "AuthenticationError" } as const;

const ACCESS_ERRORS = {
  missing_token: {
    ...UNAUTHORIZED,
    meaning: "There is no header `Authorization: Bearer TOKEN`.",
    fix: "Send one. `flywheel tokens create` makes tokens.",
  },
  invalid_token: {
    ...UNAUTHORIZED,
    meaning: "The token is unknown, revoked or expired.",
    fix: "Make one with `flywheel tokens create`.",
  },
  invalid_code: {
    ...UNAUTHORIZED,
    meaning: "The one-time code is unknown, was used already, or is older than 10 minutes.",
    fix: "`flywheel open` makes a new link.",
  },
  no_session: {
    status: 404,
    type: "NotFoundError",
    meaning: "A token is no session.",
    fix: "`flywheel tokens revoke` revokes tokens.",
  },
  unknown_token: {
    status: 404,
    type: "NotFoundError",
    meaning: "No token has this id.",
    fix: "GET /v1/tokens lists them.",
  },
  misdirected_request: {
    status: 421,
    type: "MisdirectedRequestError",
    meaning: "The Host header is missing, or is no name of this server: a web page may have pointed its own name here.",
    fix: "Use the IP address or localhost, or start the server with `--allowed-hosts NAME`.",
  },
  insufficient_scope: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "The token lacks the scope that this route needs.",
    fix: "The message names the scope.",
  },
  other_workspace: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "An admin asked to train, roll back or log to a model of another workspace.",
    fix: "Use a token of that workspace, or fork the model into your own.",
  },
} as const satisfies Record<string, ErrorRow>;

const MALFORMED = { status: 400, type: "Bad Request" } as const;
const BAD_REQUEST = { status: 400, type: "BadRequestError" } as const;
const NOT_FOUND = { status: 404, type: "NotFoundError" } as const;
const CONFLICT = { status: 409, type: "ConflictError" } as const;
const GONE = { status: 410, type: "GoneError" } as const;
const UNPROCESSABLE = { status: 422, type: "UnprocessableEntityError" } as const;
const LIMITED = { status: 429, type: "RateLimitError" } as const;
const UNAVAILABLE = { status: 503, type: "ServiceUnavailableError" } as const;
const FAILED = { status: 500, type: "InternalServerError", repeat: "useless" } as const;

export const ERRORS = {
  malformed_json: {
    ...MALFORMED,
    meaning: "The body is not JSON, not UTF-8, not an object, or is nested too deeply.",
    fix: "Send one JSON object. NaN and Infinity are not JSON.",
  },
  unsupported_media_type: {
    ...MALFORMED,
    meaning: "Content-Type is not application/json, or the route does not take the Content-Encoding.",
    fix: "Send `Content-Type: application/json`. Only training data may be gzipped.",
  },
  invalid_body: {
    ...MALFORMED,
    meaning: "A required field is missing, or a field has the wrong type or is out of range.",
    fix: "`param` names the first invalid field, the message up to 20.",
  },
  bad_http: {
    ...MALFORMED,
    meaning: "The bytes on the connection are not HTTP/1.1.",
    fix: "Check the client. Use http://, not https://, on this port.",
  },
  invalid_value: {
    ...BAD_REQUEST,
    meaning: "A value is not allowed: out of bounds, outside the vocabulary, or over a limit of the server.",
    fix: "The message names the field and the bound.",
  },
  invalid_combination: {
    ...BAD_REQUEST,
    meaning: "Two fields contradict each other, or a field needs another one.",
    fix: "The message names both. Remove one, or set the missing one.",
  },
  unsupported_content: {
    ...BAD_REQUEST,
    meaning: "A message has images, audio, video or an unknown part, which the model cannot read.",
    fix: "Send text only.",
  },
  no_chat_template: {
    ...BAD_REQUEST,
    meaning: "Neither the model, nor the request, nor the operator has a chat template.",
    fix: "Send `chat_template`, start the server with `--chat-template FILE`, or use /v1/completions.",
  },
  template_failed: {
    ...BAD_REQUEST,
    meaning: "The chat template could not be compiled, or not rendered for these messages.",
    fix: "The message has the reason. Templates refuse on purpose, for example roles out of order.",
  },
  template_refused: {
    ...BAD_REQUEST,
    meaning: "This server does not accept chat templates from requests.",
    fix: "Omit `chat_template`, or start the server with `--trust-request-chat-template`.",
  },
  context_length_exceeded: {
    ...BAD_REQUEST,
    meaning: "The prompt and the requested output do not fit in the model's context.",
    fix: "Shorten the prompt, lower `max_tokens`, or send `truncate_prompt_tokens`.",
  },
  invalid_constraint: {
    ...BAD_REQUEST,
    meaning: "A schema, expression, grammar, list of choices or structural tag could not be compiled.",
    fix: "The message has the reason.",
  },
  contradictory_controls: {
    ...BAD_REQUEST,
    meaning:
      "The constraint, `allowed_token_ids`, `bad_words` and `min_tokens` together left no token at some point of the output.",
    fix: "Relax one of the fields that the message names.",
  },
  constraint_failed: {
    ...BAD_REQUEST,
    meaning:
      "The constraint could not be followed to its end: it is too ambiguous, or the model's tokens cannot express it.",
    fix: "Make the grammar less ambiguous.",
  },
  constraint_timeout: {
    ...UNAVAILABLE,
    meaning: "Compiling a constraint, or finding the next token of one, took longer than 60 s.",
    fix: "Simplify the constraint, or retry when the server is less busy.",
    repeat: 1,
  },
  constraint_queue_full: {
    ...LIMITED,
    meaning: "Too many constraints of this token's workspace wait to be compiled.",
    fix: "Send fewer different ones at once. Equal ones are compiled once.",
    repeat: 1,
  },
  engine_refused: {
    ...BAD_REQUEST,
    meaning: "The engine behind this server cannot do what a field asks for.",
    fix: "Omit the field that the message names, or start the engine with what it needs.",
  },
  tool_choice_unavailable: {
    ...BAD_REQUEST,
    meaning: "`tool_choice` asks for parsed calls, and this server does not parse them.",
    fix: 'Use "none", or start the server with the command in the message.',
  },
  priority_unavailable: {
    ...BAD_REQUEST,
    meaning: "The server runs requests in order of arrival, and `priority` is not 0.",
    fix: "Send 0, or start the server with `--scheduling-policy priority`.",
  },
  invalid_adapter_request: {
    status: 400,
    type: "InvalidUserInput",
    meaning: "The request is incomplete, the name is taken, the rank is too large, or every slot is full.",
    fix: "Send `lora_name` and `lora_path`. `load_inplace: true` replaces an adapter. For a slot, unload one or raise `--max-loras`.",
  },
  ...ACCESS_ERRORS,
  model_not_found: {
    ...NOT_FOUND,
    meaning: "No model, adapter or policy has this name, or the policy's base model is no longer served.",
    fix: "GET /v1/models lists the names. Without `model`, the base model answers.",
  },
  not_found: {
    ...NOT_FOUND,
    meaning: "There is nothing at this path.",
    fix: "/docs lists the routes.",
  },
  unknown_request: {
    ...NOT_FOUND,
    meaning: "No request with this id is in progress, or it is another token's.",
    fix: "GET /v1/engine lists those in progress.",
  },
  unknown_response: {
    ...NOT_FOUND,
    meaning:
      "The workspace has no stored response with this id, or one of its conversation is gone (`--keep-responses`).",
    fix: "Send the conversation as `input`, without `previous_response_id`.",
  },
  conversation_too_large: {
    ...BAD_REQUEST,
    meaning:
      "The conversation, with all that it refers to, has more than `--max-body-bytes`, 8,192 items or 2,048 stored responses.",
    fix: "Send the part that matters as `input`, without `previous_response_id`.",
  },
  stored_responses_full: {
    ...LIMITED,
    meaning:
      "Stored responses that requests in progress have loaded fill an eighth of the heap, or a sixteenth for one client.",
    fix: "Retry.",
    repeat: 1,
  },
  unknown_training_model: {
    ...NOT_FOUND,
    meaning: "The workspace has no trainable model with this id.",
    fix: "GET /v1/preview/models lists them.",
  },
  unknown_training_job: {
    ...NOT_FOUND,
    meaning: "The workspace has no such job, or the job has no such event, group or trajectory.",
    fix: "GET /v1/preview/training-jobs lists the jobs. Without `after`, events come from the start.",
  },
  record_expired: {
    ...GONE,
    meaning: "What the job was trained on is not kept any more, or never was.",
    fix: "Keep more with `--keep-trajectories`, for example 20Gi/90d. Reports and events stay.",
  },
  no_token_numbers: {
    ...NOT_FOUND,
    meaning: "The trainer kept no numbers per token: the job has not completed, or this trajectory was not trained.",
    fix: "Wait for the job to complete.",
  },
  unknown_training_run: {
    status: 404,
    type: "NotFoundError",
    meaning: "The workspace has no such run or operation, or the operation has no result.",
    fix: "Poll the operation until it has `succeeded`. A released result is gone.",
  },
  unknown_checkpoint: {
    ...NOT_FOUND,
    meaning: "The model has no such step, or it was deleted.",
    fix: "GET /v1/preview/models/ID/checkpoints lists them.",
  },
  method_not_allowed: {
    status: 405,
    type: "MethodNotAllowedError",
    meaning: "The path does not support this method.",
    fix: "The `Allow` header lists the methods.",
  },
  request_timeout: {
    status: 408,
    type: "RequestTimeoutError",
    meaning: "The request took too long to arrive: `--header-timeout` for its headers, 300 s for all of it.",
    fix: "Send it without long pauses.",
  },
  model_exists: {
    ...CONFLICT,
    meaning: "A model has this entity, project and name.",
    fix: "Choose another name. `return_existing: true` answers with that model.",
  },
  name_taken: {
    ...CONFLICT,
    meaning: "The base model or an adapter has this name, so no request would reach the policy.",
    fix: "Choose another name.",
  },
  request_cancelled: {
    ...CONFLICT,
    meaning: "An admin, or the owner of the token, ended the request (DELETE /v1/engine/requests/ID).",
    fix: "Send it again if it was not you.",
    repeat: "useless",
  },
  model_busy: {
    ...CONFLICT,
    meaning: "The model has open training jobs that conflict with this change.",
    fix: "Wait for them, or cancel them.",
  },
  run_conflict: {
    status: 409,
    type: "ConflictError",
    meaning: "The request is out of sequence, or the run is closed or has another spec.",
    fix: "Resolve the run again and go on with its `next_sequence_id`.",
    repeat: "useless",
  },
  damaged_checkpoint: {
    ...CONFLICT,
    meaning: "The files of the step are damaged.",
    fix: "Use another step, and delete this one.",
  },
  body_too_large: {
    status: 413,
    type: "RequestTooLargeError",
    meaning:
      "The body is larger than the route takes. Training data may have 1,000,000 trajectories of 2,000,000 values.",
    fix: "Send less, or raise `--max-body-bytes` or `--max-training-body-bytes`. Training does not use `top_logprobs`, `metadata` and `logs`.",
  },
  too_many_values: {
    ...BAD_REQUEST,
    meaning: "The body has more fields or values than a [request](api.md#requests) may have.",
    fix: "Send less, or send it in several requests.",
  },
  invalid_training_request: {
    ...UNPROCESSABLE,
    meaning: "A field is missing, has the wrong type, is out of bounds, or contradicts another.",
    fix: "`detail` lists up to 100 problems with their paths.",
  },
  unknown_base_model: {
    ...UNPROCESSABLE,
    meaning: "This server cannot train this base model.",
    fix: "GET /v1/preview/base-models lists them.",
  },
  adapter_rank_too_large: {
    ...UNPROCESSABLE,
    meaning: "The model's adapters have a larger rank than this server allows.",
    fix: "The operator can raise `--max-lora-rank`. Step 0 still answers.",
  },
  idempotency_key_reused: {
    ...UNPROCESSABLE,
    meaning: "The Idempotency-Key was used with another body.",
    fix: "Use a new key for a new job.",
  },
  quota_exceeded: {
    ...LIMITED,
    meaning: "The workspace is at its limit of disk space (`--max-step-bytes`), open jobs or notes (2,000).",
    fix: "Delete steps or models, or wait for jobs. GET /v1/me shows what takes the space.",
    repeat: "useless",
  },
  queue_full: {
    ...LIMITED,
    meaning: "All slots are busy and the queue is full, or too many chat templates wait to be rendered.",
    fix: "Retry. The operator can raise `--max-queue`.",
    repeat: 1,
  },
  logprobs_full: {
    ...LIMITED,
    meaning: "Log-probabilities of replies in progress fill a quarter of the heap, or an eighth for one client.",
    fix: "Retry, or ask for fewer of them, or for a stream.",
    repeat: 1,
  },
  unknown_mcp_server: {
    ...NOT_FOUND,
    meaning: "No MCP server has this name.",
    fix: "GET /v1/mcp-servers lists them. The operator adds one with `--mcp-server`.",
  },
  mcp_server_busy: {
    ...LIMITED,
    meaning: "The caller has 8 calls of MCP servers in progress, or all together 32.",
    fix: "Wait for them.",
    repeat: 1,
  },
  mcp_server_failed: {
    status: 502,
    type: "BadGatewayError",
    meaning: "The MCP server is unreachable, took more than 60 s, sent more than 1 MiB, or answered with an error.",
    fix: "Whether the tool did its work is not known.",
  },
  headers_too_large: {
    status: 431,
    type: "Bad Request",
    meaning: "The headers are larger than 16 KiB.",
    fix: "Send fewer or shorter headers.",
  },
  internal_error: {
    ...FAILED,
    meaning: "The server failed. Its log has the reason under the request id.",
    fix: "Report it with the response's `x-request-id`.",
  },
  broken_adapter: {
    ...FAILED,
    meaning: "The adapter's files are damaged, do not fit the model, or use something unsupported.",
    fix: "Save the adapter again for this model. The message names the file or tensor.",
  },
  engine_failed: {
    ...FAILED,
    meaning: "The engine ended this request with an error. Other requests continue.",
    fix: "The log has the reason under the request id.",
  },
  outcome_unknown: {
    ...FAILED,
    meaning: "The database was lost while it recorded the change, which may have taken effect.",
    fix: "Look before you send it again.",
  },
  not_supported: {
    status: 501,
    type: "NotImplementedError",
    meaning: "This server does not offer the feature.",
    fix: "The message says why.",
    repeat: "useless",
  },
  shutting_down: {
    ...UNAVAILABLE,
    meaning: "The server is shutting down.",
    fix: "Retry, or ask another server.",
    repeat: 5,
  },
  engine_unavailable: {
    ...UNAVAILABLE,
    meaning: "No engine is ready, or the request's engine was lost and it cannot go on elsewhere.",
    fix: "Retry. GET /metrics shows the state of every engine.",
    repeat: 1,
  },
  store_unavailable: {
    ...UNAVAILABLE,
    meaning: "The server cannot reach its database. Nothing was changed.",
    fix: "Retry. The log has the reason.",
    repeat: 2,
  },
  storage_unavailable: {
    ...UNAVAILABLE,
    meaning: "The server cannot reach the bucket of `--storage`. Nothing was changed.",
    fix: "Retry. The log has the reason.",
    repeat: 5,
  },
  no_adapter_slot: {
    ...UNAVAILABLE,
    meaning: "Running requests and the operator's adapters hold every adapter slot.",
    fix: "Retry. The operator can raise `--max-loras` or unload an adapter.",
    repeat: 1,
  },
  trainer_failed: {
    ...UNAVAILABLE,
    meaning: "The trainer did not start, or cannot train the base model.",
    fix: "`flywheel doctor --trainer torch` says what to change.",
    repeat: 60,
  },
  storage_full: {
    status: 507,
    type: "InsufficientStorageError",
    meaning: "The server's disk is full. Nothing was accepted.",
    fix: "Free space in the data folder.",
  },
  engine_dead: {
    ...UNAVAILABLE,
    meaning: "The engine stopped and could not be restarted.",
    fix: "Restart the server; its log says why. Retry if a supervisor does.",
    repeat: 10, // about how long a supervisor takes to restart the server
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;
