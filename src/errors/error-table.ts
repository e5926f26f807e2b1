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
    meaning: "The Authorization header is missing or does not have the form `Bearer TOKEN`.",
    fix: "Send `Authorization: Bearer TOKEN`. Create a token with `bin/flywheel tokens create`.",
  },
  invalid_token: {
    ...UNAUTHORIZED,
    meaning: "The token is unknown, revoked or expired.",
    fix: "Create a new token with `bin/flywheel tokens create`.",
  },
  invalid_code: {
    ...UNAUTHORIZED,
    meaning: "The one-time code is unknown, was used already, or is older than 10 minutes.",
    fix: "Run `bin/flywheel open` for a new link.",
  },
  no_session: {
    status: 404,
    type: "NotFoundError",
    meaning: "DELETE /v1/sessions/current was called with a token, which is no session.",
    fix: "Revoke a token with `bin/flywheel tokens revoke`.",
  },
  unknown_token: {
    status: 404,
    type: "NotFoundError",
    meaning: "No token has this id.",
    fix: "GET /v1/tokens lists the tokens.",
  },
  misdirected_request: {
    status: 421,
    type: "MisdirectedRequestError",
    meaning:
      "The Host header is missing, or is not a name of this server. A web page may have pointed its own name at this address.",
    fix: "Use the IP address or localhost, or start the server with `--allowed-hosts NAME`.",
  },
  insufficient_scope: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "The token is valid but lacks the scope that this route requires.",
    fix: "Use a token that has the scope named in the message.",
  },
  other_workspace: {
    status: 403,
    type: "PermissionDeniedError",
    meaning: "An admin asked to train, roll back or log to a model of another workspace.",
    fix: "Use a token of that workspace, made with `bin/flywheel tokens create --workspace NAME`. Or fork the model into your own.",
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
    fix: "Send one JSON object. NaN and Infinity are not JSON; use null or omit the field.",
  },
  unsupported_media_type: {
    ...MALFORMED,
    meaning: "Content-Type is missing or is not application/json, or the route does not support the Content-Encoding.",
    fix: "Send `Content-Type: application/json`. Only POST to /v1/preview/training-jobs, sft-training-jobs and models/ID/log accepts gzip.",
  },
  invalid_body: {
    ...MALFORMED,
    meaning: "A required field is missing, or a field has the wrong JSON type or is outside its range or enumeration.",
    fix: "`param` is the path of the first invalid field. The message lists up to 20 of them.",
  },
  bad_http: {
    ...MALFORMED,
    meaning: "The bytes on the connection are not HTTP/1.1.",
    fix: "Check the client. Use http://, not https://, on this port.",
  },
  invalid_value: {
    ...BAD_REQUEST,
    meaning: "A value is well-formed but not allowed: out of bounds, outside the vocabulary, or over a server limit.",
    fix: "The message names the field and the bound. `param` names the field or is null.",
  },
  invalid_combination: {
    ...BAD_REQUEST,
    meaning: "Two fields contradict each other, or a field needs another one.",
    fix: "The message names both fields. Remove one of them or set the missing one.",
  },
  unsupported_content: {
    ...BAD_REQUEST,
    meaning: "A message contains images, audio, video or an unknown part type, which the model cannot read.",
    fix: 'Send text parts only: a string, or `{"type":"text","text":…}`.',
  },
  no_chat_template: {
    ...BAD_REQUEST,
    meaning: "The model has no chat template, and the request and the operator supplied none.",
    fix: "Send `chat_template`, start the server with `--chat-template FILE`, or use /v1/completions.",
  },
  template_failed: {
    ...BAD_REQUEST,
    meaning: "The chat template could not be compiled, or not rendered for these messages.",
    fix: "Read the message. Templates raise errors on purpose, for example when roles are out of order.",
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
    meaning: "A JSON schema, regular expression, grammar, choice list or structural tag could not be compiled.",
    fix: "The message gives the compiler's reason.",
  },
  contradictory_controls: {
    ...BAD_REQUEST,
    meaning:
      "No token was left at some point of the output: the constraint, `allowed_token_ids`, `bad_words` and `min_tokens` together forbid every one.",
    fix: "Relax or remove one of the fields that the message names. The error is found during generation; in a stream it is an error event.",
  },
  constraint_failed: {
    ...BAD_REQUEST,
    meaning:
      "The constraint could not be followed any further: it is too ambiguous, or the model's tokens cannot express it.",
    fix: "Make the grammar less ambiguous. The error is found during generation; in a stream it is an error event.",
  },
  constraint_timeout: {
    ...UNAVAILABLE,
    meaning: "Compiling a constraint, or finding the next token of one, took longer than 60 s.",
    fix: "Try again when the server is less busy, or simplify the constraint.",
    repeat: 1,
  },
  constraint_queue_full: {
    ...LIMITED,
    meaning: "Too many constraints of this token's workspace wait to be compiled.",
    fix: "Send fewer different constraints at once. Equal ones are compiled once.",
    repeat: 1,
  },
  engine_refused: {
    ...BAD_REQUEST,
    meaning: "The engine behind this server cannot do what a field asks for, although Flywheel's own engine can.",
    fix: "The message names the field and the engine. Omit the field, or start the engine with what it needs.",
  },
  tool_choice_unavailable: {
    ...BAD_REQUEST,
    meaning: "`tool_choice` asks for parsed tool calls, but this server does not parse them.",
    fix: 'Use "none", or start the server with `--enable-auto-tool-choice`. The message has the whole command.',
  },
  priority_unavailable: {
    ...BAD_REQUEST,
    meaning: "A non-zero `priority` was sent, but the server schedules first come, first served.",
    fix: "Send `priority: 0`, or start the server with `--scheduling-policy priority`.",
  },
  invalid_adapter_request: {
    status: 400,
    type: "InvalidUserInput",
    meaning:
      "The adapter request is incomplete, the name is taken, the adapter's rank is too large, or loaded adapters fill every slot.",
    fix: "Send both `lora_name` and `lora_path`. Use `load_inplace: true` to replace a loaded adapter. If no slot is free, unload an adapter or raise `--max-loras`.",
  },
  ...ACCESS_ERRORS,
  model_not_found: {
    ...NOT_FOUND,
    meaning: "No served model, loaded adapter or policy has this name, or the policy's base model is no longer served.",
    fix: "GET /v1/models lists the names. Omit `model` to get the base model.",
  },
  not_found: {
    ...NOT_FOUND,
    meaning: "There is nothing at this path.",
    fix: "GET /openapi.json lists the routes.",
  },
  unknown_request: {
    ...NOT_FOUND,
    meaning: "No request with this id is in progress, or it is another token's.",
    fix: "GET /v1/engine lists the requests in progress. One that has ended is not listed.",
  },
  unknown_response: {
    ...NOT_FOUND,
    meaning:
      "The token's workspace has no stored response with this id, or one that its conversation contains is gone. Responses go when they are deleted, were not used for long, or when the workspace has too many (`--keep-responses`).",
    fix: "Send the conversation as `input`, without `previous_response_id`.",
  },
  conversation_too_large: {
    ...BAD_REQUEST,
    meaning:
      "With all that it continues and refers to, the conversation of a response has more bytes than a body may have (`--max-body-bytes`), more than 8,192 items, or reaches into more than 2,048 stored responses.",
    fix: "Send the part that matters as `input`, without `previous_response_id`.",
  },
  stored_responses_full: {
    ...LIMITED,
    meaning:
      "Requests in progress have loaded as much of stored responses as the server has memory for, or as one client may have: an eighth and a sixteenth of the heap.",
    fix: "Retry after `Retry-After` seconds; SDKs do so automatically.",
    repeat: 1,
  },
  unknown_training_model: {
    ...NOT_FOUND,
    meaning: "The token's workspace has no trainable model with this id.",
    fix: "GET /v1/preview/models lists the models of the workspace.",
  },
  unknown_training_job: {
    ...NOT_FOUND,
    meaning:
      "The token's workspace has no training job with this id, the event cursor does not belong to the job, or the job has no such group or trajectory.",
    fix: "GET /v1/preview/training-jobs lists the jobs of the workspace. Omit `after` to read events from the start.",
  },
  record_expired: {
    ...GONE,
    meaning:
      "What the job was trained on is not kept any more, or never was: `--keep-trajectories` bounds it, and jobs of earlier versions have none.",
    fix: "The job's report and events stay. Keep more with `--keep-trajectories`, for example 20Gi/90d.",
  },
  no_token_numbers: {
    ...NOT_FOUND,
    meaning: "The trainer kept no numbers per token: the job has not completed, or this trajectory was not trained.",
    fix: "Wait for the job. Numbers exist for trained trajectories of completed jobs.",
  },
  unknown_training_run: {
    status: 404,
    type: "NotFoundError",
    meaning: "This token's owner has no training run or operation with this id, or the operation has no result.",
    fix: "Resolve the run again, and poll the operation until its status is `succeeded`. A released result is gone.",
  },
  unknown_checkpoint: {
    ...NOT_FOUND,
    meaning: "The model has no such step, or the step was deleted.",
    fix: "GET /v1/preview/models/ID/checkpoints lists the steps.",
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
    meaning:
      "The request took too long to arrive. Its headers must arrive within 10 s (`--header-timeout`), all of it within 300 s.",
    fix: "Send headers and body without long pauses.",
  },
  model_exists: {
    ...CONFLICT,
    meaning: "A model with this entity, project and name already exists.",
    fix: "Choose another name, or send `return_existing: true` to get the existing one.",
  },
  name_taken: {
    ...CONFLICT,
    meaning: "The base model or a loaded adapter already has this name, so requests could not reach a policy with it.",
    fix: "Choose another name.",
  },
  request_cancelled: {
    ...CONFLICT,
    meaning: "Somebody ended the request with DELETE /v1/engine/requests/ID: an admin, or the owner of the token.",
    fix: "Send it again if it was not you.",
    repeat: "useless",
  },
  model_busy: {
    ...CONFLICT,
    meaning: "The model has open training jobs that conflict with this change.",
    fix: "Wait for the jobs or cancel them, then retry.",
  },
  run_conflict: {
    status: 409,
    type: "ConflictError",
    meaning:
      "The request does not fit the training run: it is out of sequence, or the run is closed or has another spec.",
    fix: "Resolve the run again and continue with its `next_sequence_id`. The message says what differs.",
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
      "The body is larger than the route accepts. In training data, a trajectory or example may have 2,000,000 values, and there may be 1,000,000 of them.",
    fix: "Send less, or raise `--max-body-bytes` (for training data, `--max-training-body-bytes`). Training does not use `top_logprobs`, `metadata` and `logs`, so you can omit them.",
  },
  too_many_values: {
    ...BAD_REQUEST,
    meaning:
      "The body has more than 1,000 fields, or it or the JSON inside its fields has more than 200,000 values, or more than 60,000 texts, lists and objects (names of fields count), or more than 60,000 values in `messages`, `tools` and `chat_template_kwargs`.",
    fix: "Send less, or send it in several requests.",
  },
  invalid_training_request: {
    ...UNPROCESSABLE,
    meaning:
      "A field of a training request is missing, has the wrong type, is out of bounds, or contradicts another field.",
    fix: "`detail` lists up to 100 problems with their paths. In trajectories, a path gives the group, trajectory and element.",
  },
  unknown_base_model: {
    ...UNPROCESSABLE,
    meaning: "This server cannot train this base model.",
    fix: "GET /v1/preview/base-models lists them.",
  },
  adapter_rank_too_large: {
    ...UNPROCESSABLE,
    meaning:
      "The model's adapters have a larger rank than this server allows, so the model can be neither used nor trained.",
    fix: "The operator can raise `--max-lora-rank`. Step 0, the unchanged model, still answers.",
  },
  idempotency_key_reused: {
    ...UNPROCESSABLE,
    meaning: "The Idempotency-Key was already used with another body.",
    fix: "Use a new key for a new job. Repeat a key only with exactly the same body.",
  },
  quota_exceeded: {
    ...LIMITED,
    meaning:
      "The workspace has reached the operator's limit on disk space (`--max-step-bytes`) or open jobs, or has 2,000 notes.",
    fix: "Delete checkpoints or models, or wait for jobs to finish. `GET /v1/me` shows what takes the space. The operator can raise the limits.",
    repeat: "useless",
  },
  queue_full: {
    ...LIMITED,
    meaning:
      "All slots are busy and the queue is full, or 64 requests are waiting for their own chat templates to be rendered.",
    fix: "Retry after `Retry-After` seconds; SDKs do so automatically. The operator can raise `--max-queue`.",
    repeat: 1,
  },
  logprobs_full: {
    ...LIMITED,
    meaning:
      "The replies in progress hold as many log probabilities as the server has memory for, or as one client may have: a quarter and an eighth of the heap.",
    fix: "Retry after `Retry-After` seconds. Ask for fewer choices, tokens or log probabilities, or for a stream.",
    repeat: 1,
  },
  unknown_mcp_server: {
    ...NOT_FOUND,
    meaning: "The operator lists no MCP server of this name.",
    fix: "GET /v1/mcp-servers lists the names. The operator adds one with `--mcp-server NAME=URL`.",
  },
  mcp_server_busy: {
    ...LIMITED,
    meaning: "The caller has 8 requests to MCP servers in progress, or all callers together 32.",
    fix: "Wait for the calls that run.",
    repeat: 1,
  },
  mcp_server_failed: {
    status: 502,
    type: "BadGatewayError",
    meaning:
      "An MCP server of the operator cannot be reached, took longer than 60 s, sent more than 1 MiB, or answered with an error.",
    fix: "The message names the server. Whether the tool did its work is not known.",
  },
  headers_too_large: {
    status: 431,
    type: "Bad Request",
    meaning: "The request headers are larger than the server accepts (16 KiB).",
    fix: "Send fewer or shorter headers.",
  },
  internal_error: {
    ...FAILED,
    meaning: "The server failed. The log has the details under the request id.",
    fix: "Report it with the response's `x-request-id`.",
  },
  broken_adapter: {
    ...FAILED,
    meaning: "The adapter's files are damaged, do not fit the model, or use an unsupported feature.",
    fix: "The message names the file or tensor. Save the adapter again for this base model.",
  },
  engine_failed: {
    ...FAILED,
    meaning: "The engine ended this request with an error. Other requests continue.",
    fix: "The log has the reason under the request id.",
  },
  outcome_unknown: {
    ...FAILED,
    meaning: "The database was lost while it recorded the change. The change may or may not have taken effect.",
    fix: "Look whether it did before you send the request again.",
  },
  not_supported: {
    status: 501,
    type: "NotImplementedError",
    meaning: "The running engine or model does not offer this feature.",
    fix: "See docs/reference/wire.md for the supported features.",
    repeat: "useless",
  },
  shutting_down: {
    ...UNAVAILABLE,
    meaning: "The server is shutting down and accepts no new requests.",
    fix: "Retry after `Retry-After` seconds, or use another server.",
    repeat: 5,
  },
  engine_unavailable: {
    ...UNAVAILABLE,
    meaning: "No engine is ready, or the one that ran the request was lost and the request cannot go on elsewhere.",
    fix: "Retry after `Retry-After` seconds. GET /metrics shows the state of every replica.",
    repeat: 1,
  },
  store_unavailable: {
    ...UNAVAILABLE,
    meaning: "The server cannot reach its database. Nothing was changed. Running requests continue.",
    fix: "Retry after `Retry-After` seconds. The operator finds the reason in the log.",
    repeat: 2,
  },
  storage_unavailable: {
    ...UNAVAILABLE,
    meaning: "The server cannot reach the bucket of `--storage`, or is refused there. Nothing was changed.",
    fix: "Retry after `Retry-After` seconds. The operator finds the reason in the log.",
    repeat: 5,
  },
  no_adapter_slot: {
    ...UNAVAILABLE,
    meaning: "Every adapter slot is in use by running requests or by adapters that the operator loaded.",
    fix: "Retry after `Retry-After` seconds. The operator can raise `--max-loras` or unload an adapter.",
    repeat: 1,
  },
  trainer_failed: {
    ...UNAVAILABLE,
    meaning: "The trainer did not start, or cannot train the base model.",
    fix: "The message says why. The operator can run `flywheel doctor --trainer torch`.",
    repeat: 60,
  },
  storage_full: {
    status: 507,
    type: "InsufficientStorageError",
    meaning: "The server's disk is full. Nothing was accepted.",
    fix: "Free space in the server's data directory, then retry.",
  },
  engine_dead: {
    ...UNAVAILABLE,
    meaning: "The engine stopped and could not be restarted.",
    fix: "Restart the server. The log says why the engine stopped. If a supervisor restarts it, retry after `Retry-After` seconds.",
    repeat: 10, // about how long a supervisor takes to restart the server
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;
