// The request fields that chat completions and text completions share: sampling, termination, output detail,
// scheduling. Kept apart so that the two dialects cannot drift.
import { type Static, Type } from "typebox";
import { guidedFields, ResponseFormat, StructuredOutputs } from "./constraint.schema.ts";
import { AnyObject, ExtraArgs, int64, orNull, RepetitionDetection, StreamOptions } from "./schema-parts.ts";

const flag = (initial: boolean, description: string) => Type.Optional(Type.Boolean({ default: initial, description }));

export const samplingFields = {
  model: orNull(Type.String(), {
    description: "A served model or adapter name. Absent, null or empty: the base model.",
  }),
  frequency_penalty: orNull(Type.Number(), { default: 0, description: "[-2, 2], per occurrence in the output." }),
  presence_penalty: orNull(Type.Number(), { default: 0, description: "[-2, 2], once per token in the output." }),
  logit_bias: orNull(Type.Record(Type.String(), Type.Number()), {
    description: "Token id → value added to its logit; clamped to [-100, 100].",
  }),
  n: orNull(Type.Integer(), {
    default: 1,
    description: "Number of choices, 1 to 16384; they share one prompt computation.",
  }),
  response_format: orNull(ResponseFormat),
  seed: orNull(int64(), { description: "Same seed, same output. -1: none. Choice i uses seed + i." }),
  stop: orNull(Type.Union([Type.String(), Type.Array(Type.String())]), {
    description: "Strings that end the output; 65536 characters in all.",
  }),
  stream: orNull(Type.Boolean(), { default: false }),
  stream_options: orNull(StreamOptions),
  temperature: orNull(Type.Number(), { description: "[0, 2]; 0 is greedy. Default: the model's own, else 1." }),
  top_p: orNull(Type.Number(), { description: "(0, 1]. Default: the model's own, else 1." }),
  top_k: orNull(Type.Integer(), { description: "At least 1; 0 or -1: off. Default: the model's own, else off." }),
  min_p: orNull(Type.Number(), { description: "[0, 1]. Default: the model's own, else 0." }),
  repetition_penalty: orNull(Type.Number(), {
    description: "Greater than 0; counts prompt and output. Default: the model's own, else 1.",
  }),
  length_penalty: Type.Optional(Type.Number({ default: 1, description: "For beam search only; no effect here." })),
  stop_token_ids: orNull(Type.Array(Type.Integer()), { description: "Token ids that end the output." }),
  include_stop_str_in_output: flag(false, "Keep the text of the stop string or stop token."),
  ignore_eos: flag(false, "Go on after end-of-sequence; stop strings and stop_token_ids still end the output."),
  min_tokens: Type.Optional(
    Type.Integer({ default: 0, description: "Nothing ends the output earlier, but a constraint that is complete." }),
  ),
  skip_special_tokens: flag(true, "Hide special tokens in the text."),
  spaces_between_special_tokens: flag(true, "Acts when special tokens are shown."),
  truncate_prompt_tokens: orNull(int64({ minimum: -1 }), {
    description: "Keep only N prompt tokens; -1: as many as fit beside max_tokens.",
  }),
  truncation_side: orNull(Type.Enum(["left", "right"]), {
    default: "left",
    description: "The side that truncate_prompt_tokens cuts off.",
  }),
  prompt_logprobs: orNull(Type.Integer(), { description: "Log probabilities of the prompt, with the N most likely." }),
  logprob_token_ids: orNull(Type.Array(Type.Integer()), {
    description: "Log probabilities of these ids, at most 128, instead of the most likely ones. Needs logprobs.",
  }),
  thinking_token_budget: orNull(Type.Integer({ minimum: -1 }), {
    description: "Most tokens of reasoning; then the thought is ended. -1: no limit. Needs a reasoning parser.",
  }),
  use_beam_search: orNull(Type.Boolean(), { default: false, description: "true is refused: there is no beam search." }),
  allowed_token_ids: orNull(Type.Array(Type.Integer()), { description: "Only these tokens may be generated." }),
  bad_words: Type.Optional(Type.Array(Type.String(), { default: [], description: "Words that must not appear." })),
  add_special_tokens: Type.Optional(Type.Boolean({ description: "Add BOS and the like around the prompt text." })),
  structured_outputs: orNull(StructuredOutputs),
  ...guidedFields,
  priority: Type.Optional(int64({ default: 0, description: "Lower is handled earlier." })),
  request_id: Type.Optional(Type.String({ description: "Becomes part of the reply's id. Default: a random UUID." })),
  return_tokens_as_token_ids: orNull(Type.Boolean(), { description: "Write tokens as token_id:N in logprobs." }),
  return_token_ids: orNull(Type.Boolean(), { description: "Add prompt and output token ids to the reply." }),
  cache_salt: orNull(Type.String({ minLength: 1 }), { description: "Isolates this request's prefix-cache entries." }),
  kv_transfer_params: orNull(AnyObject, { description: "Carried to the engine; the embedded engine ignores it." }),
  engine_xargs: orNull(ExtraArgs, { description: "Carried to the engine; the embedded engine ignores it." }),
  vllm_xargs: orNull(ExtraArgs, { description: "Other name of engine_xargs." }),
  repetition_detection: orNull(RepetitionDetection),
  user: orNull(Type.String(), { description: "Accepted without effect." }),
};

const Shared = Type.Object(samplingFields);

export type SharedFields = Static<typeof Shared>;
