// Fields that several dialects share: sampling and constraints.
import { type Static, Type } from "typebox";
import { AnyObject, ExtraArgs, int64, orNull, RepetitionDetection, StreamOptions } from "../schema/body.ts";

// Wire schemas for structured output: response_format, structured_outputs, and guided_* for older clients.

const JsonSchemaFormat = Type.Object({
  name: Type.String(),
  description: orNull(Type.String()),
  schema: orNull(AnyObject, { description: "The JSON Schema that the output must follow." }),
  strict: orNull(Type.Boolean(), { description: "Accepted without effect: the output always follows the schema." }),
});

export const ResponseFormat = Type.Object(
  {
    type: Type.Enum(["text", "json_object", "json_schema", "structural_tag"]),
    json_schema: orNull(JsonSchemaFormat),
    schema: orNull(AnyObject, { description: "json_object: the JSON Schema that the object must follow." }),
    format: Type.Optional(Type.Unknown({ description: "structural_tag: the tag's format." })),
    structures: Type.Optional(Type.Unknown({ description: "structural_tag, legacy form." })),
    triggers: Type.Optional(Type.Unknown({ description: "structural_tag, legacy form." })),
  },
  { title: "ResponseFormat" },
);

export const StructuredOutputs = Type.Object(
  {
    json: orNull(Type.Union([Type.String(), AnyObject]), { description: "A JSON Schema, as text or as an object." }),
    regex: orNull(Type.String(), { description: "The whole output must match this expression." }),
    choice: orNull(Type.Array(Type.String()), { description: "The output must be one of these." }),
    grammar: orNull(Type.String(), { description: "EBNF with a root rule, or Lark." }),
    json_object: orNull(Type.Boolean(), { description: "If true, the output must be a JSON object." }),
    structural_tag: orNull(Type.String(), { description: "A structural tag as JSON text." }),
    disable_fallback: Type.Optional(Type.Boolean({ default: false, description: "Accepted without effect." })),
    disable_any_whitespace: Type.Optional(Type.Boolean({ default: false, description: "Write compact JSON." })),
    disable_additional_properties: Type.Optional(
      Type.Boolean({ default: false, description: "Treat a missing additionalProperties as false." }),
    ),
    any_property_order: Type.Optional(
      Type.Boolean({ default: false, description: "Declared properties may come in any order." }),
    ),
    undeclared_properties: Type.Optional(
      Type.Boolean({ default: false, description: "Treat a missing additionalProperties as true." }),
    ),
    whitespace_pattern: orNull(Type.String(), { description: "A regular expression for whitespace in JSON." }),
    _backend: orNull(Type.String(), { description: "Accepted without effect." }),
    _backend_was_auto: Type.Optional(Type.Boolean({ default: false, description: "Accepted without effect." })),
  },
  { title: "StructuredOutputs" },
);

const older = (field: string) => ({ description: `Older name of structured_outputs.${field}.` });

export const guidedFields = {
  guided_json: orNull(Type.Union([Type.String(), AnyObject]), older("json")),
  guided_regex: orNull(Type.String(), older("regex")),
  guided_choice: orNull(Type.Array(Type.String()), older("choice")),
  guided_grammar: orNull(Type.String(), older("grammar")),
  guided_whitespace_pattern: orNull(Type.String(), older("whitespace_pattern")),
};

// Sampling, stopping, output detail and scheduling. Every dialect takes its fields from here, so they cannot drift apart.

const flag = (initial: boolean, description: string) => Type.Optional(Type.Boolean({ default: initial, description }));

const PASSED_ON =
  "A remote engine gets the members that --allowed-engine-args names; the embedded engine ignores them all.";

export const samplingFields = {
  model: orNull(Type.String(), {
    description: "A served model or adapter. Absent, null or empty selects the base model.",
  }),
  frequency_penalty: orNull(Type.Number(), { default: 0, description: "[-2, 2], per occurrence in the output." }),
  presence_penalty: orNull(Type.Number(), { default: 0, description: "[-2, 2], once per token in the output." }),
  logit_bias: orNull(Type.Record(Type.String(), Type.Number()), {
    description: "Maps token ids to values added to their logits, clamped to [-100, 100].",
  }),
  n: orNull(Type.Integer(), {
    default: 1,
    description: "Number of choices, 1 to 16384. The prompt is computed once for all of them.",
  }),
  response_format: orNull(ResponseFormat),
  seed: orNull(int64(), { description: "Same seed, same output; -1 means none. Choice i uses seed + i." }),
  stop: orNull(Type.Union([Type.String(), Type.Array(Type.String())]), {
    description: "Strings that end the output, at most 65536 characters in total.",
  }),
  stream: orNull(Type.Boolean(), { default: false }),
  stream_options: orNull(StreamOptions),
  temperature: orNull(Type.Number(), { description: "[0, 2]; 0 is greedy. Default: the model's own, else 1." }),
  top_p: orNull(Type.Number(), { description: "(0, 1]. Default: the model's own, else 1." }),
  top_k: orNull(Type.Integer(), { description: "At least 1; 0 or -1 is off. Default: the model's own, else off." }),
  min_p: orNull(Type.Number(), { description: "[0, 1]. Default: the model's own, else 0." }),
  repetition_penalty: orNull(Type.Number(), {
    description: "Greater than 0; covers prompt and output. Default: the model's own, else 1.",
  }),
  length_penalty: Type.Optional(Type.Number({ default: 1, description: "For beam search only; has no effect." })),
  stop_token_ids: orNull(Type.Array(Type.Integer()), { description: "Token ids that end the output." }),
  include_stop_str_in_output: flag(false, "Keep the text of the stop string or stop token."),
  ignore_eos: flag(false, "Continue past end-of-sequence; stop strings and stop_token_ids still end the output."),
  min_tokens: Type.Optional(
    Type.Integer({ default: 0, description: "The output cannot end earlier, unless a constraint is complete." }),
  ),
  skip_special_tokens: flag(true, "Leave special tokens out of the text."),
  spaces_between_special_tokens: flag(true, "Takes effect only when special tokens are shown."),
  truncate_prompt_tokens: orNull(int64({ minimum: -1 }), {
    description: "Keep only N prompt tokens; -1 keeps as many as fit beside max_tokens.",
  }),
  truncation_side: orNull(Type.Enum(["left", "right"]), {
    default: "left",
    description: "The side that truncate_prompt_tokens removes.",
  }),
  prompt_logprobs: orNull(Type.Integer(), { description: "Prompt log probabilities, with the N most likely tokens." }),
  logprob_token_ids: orNull(Type.Array(Type.Integer()), {
    description: "Return log probabilities of these ids (at most 128) instead of the most likely. Needs logprobs.",
  }),
  thinking_token_budget: orNull(Type.Integer({ minimum: -1 }), {
    description: "Maximum reasoning tokens before the thought is ended; -1 is no limit. Needs a reasoning parser.",
  }),
  use_beam_search: orNull(Type.Boolean(), { default: false, description: "Not supported: true is refused." }),
  allowed_token_ids: orNull(Type.Array(Type.Integer()), { description: "Only these tokens may be generated." }),
  bad_words: Type.Optional(Type.Array(Type.String(), { default: [], description: "Words that must not appear." })),
  add_special_tokens: Type.Optional(Type.Boolean({ description: "Add BOS and other special tokens to the prompt." })),
  structured_outputs: orNull(StructuredOutputs),
  ...guidedFields,
  priority: Type.Optional(int64({ default: 0, description: "Lower values are scheduled earlier." })),
  request_id: Type.Optional(Type.String({ description: "Used in the reply's id. Default: a random UUID." })),
  return_tokens_as_token_ids: orNull(Type.Boolean(), { description: "Write tokens as token_id:N in logprobs." }),
  return_token_ids: orNull(Type.Boolean(), { description: "Add prompt and output token ids to the reply." }),
  cache_salt: orNull(Type.String({ minLength: 1, maxLength: 256, "x-max-bytes": 256 }), {
    description: "Isolates this request's prefix-cache entries within its workspace.",
  }),
  kv_transfer_params: orNull(AnyObject, { description: PASSED_ON }),
  engine_xargs: orNull(ExtraArgs, { description: PASSED_ON }),
  vllm_xargs: orNull(ExtraArgs, { description: "Alias of engine_xargs." }),
  repetition_detection: orNull(RepetitionDetection),
  user: orNull(Type.String(), { description: "Accepted without effect." }),
};

const Shared = Type.Object(samplingFields);

export type SharedFields = Static<typeof Shared>;
