// Wire schemas of /inference/v1/generate. The request keeps its sampling fields in `sampling_params`, named as vLLM's
// SamplingParams. Nothing in them comes from the model's generation_config.json but the ids that end an output and max_tokens.
import { type Static, Type } from "typebox";
import { samplingFields } from "../../generation/fields.schema.ts";
import { PromptLogprobs, Usage } from "../../generation/reply.ts";
import { AnyObject, mustBeAbsent, nullable, orNull } from "../../schema/body.ts";

const noEffect = { description: "Accepted without effect." };

const TokenSampling = Type.Object(
  {
    n: samplingFields.n,
    presence_penalty: samplingFields.presence_penalty,
    frequency_penalty: samplingFields.frequency_penalty,
    repetition_penalty: orNull(Type.Number(), {
      default: 1,
      description: "Greater than 0; covers prompt and output.",
    }),
    temperature: orNull(Type.Number(), { default: 1, description: "[0, 2]; 0 is greedy." }),
    top_p: orNull(Type.Number(), { default: 1, description: "(0, 1]." }),
    top_k: orNull(Type.Integer(), { default: 0, description: "At least 1; 0 or -1 is off." }),
    min_p: orNull(Type.Number(), { default: 0, description: "[0, 1]." }),
    seed: samplingFields.seed,
    stop: samplingFields.stop,
    stop_token_ids: samplingFields.stop_token_ids,
    ignore_eos: samplingFields.ignore_eos,
    max_tokens: orNull(Type.Integer(), {
      description:
        "Output budget; the context's end may come earlier. null: the rest of the context. Absent: the same, or less if the model says so.",
    }),
    min_tokens: samplingFields.min_tokens,
    logprobs: orNull(Type.Integer(), {
      description: "Return log probabilities, with the N most likely tokens; -1: whole vocabulary.",
    }),
    prompt_logprobs: samplingFields.prompt_logprobs,
    logprob_token_ids: orNull(Type.Array(Type.Integer()), {
      description: "Return log probabilities of these ids (at most 128) instead of the most likely.",
    }),
    detokenize: Type.Optional(Type.Boolean({ default: true, description: "false: no text is made; refuses stop." })),
    skip_special_tokens: Type.Optional(Type.Boolean({ default: true, description: "In the text that stop looks at." })),
    spaces_between_special_tokens: samplingFields.spaces_between_special_tokens,
    include_stop_str_in_output: Type.Optional(Type.Boolean(noEffect)),
    structured_outputs: samplingFields.structured_outputs,
    logit_bias: samplingFields.logit_bias,
    allowed_token_ids: samplingFields.allowed_token_ids,
    bad_words: orNull(Type.Array(Type.String()), { description: "Words that must not appear." }),
    thinking_token_budget: samplingFields.thinking_token_budget,
    repetition_detection: samplingFields.repetition_detection,
    stream_interval: orNull(Type.Integer({ minimum: 1 }), {
      description: "Tokens per chunk of a choice, except its first and last chunk.",
    }),
    extra_args: orNull(AnyObject, {
      description: "Like engine_xargs of the other routes. kv_transfer_params may be in it.",
    }),
    trace_decode_token_ids: orNull(mustBeAbsent("trace_decode_token_ids is not supported: leave it out")),
    skip_reading_prefix_cache: orNull(Type.Boolean(), {
      description: "Accepted without effect: the prefix cache does not change results.",
    }),
    flat_logprobs: Type.Optional(Type.Boolean(noEffect)),
    output_kind: Type.Optional(Type.Integer(noEffect)),
    skip_clone: Type.Optional(Type.Boolean(noEffect)),
    output_text_buffer_length: Type.Optional(Type.Integer(noEffect)),
    routed_experts_prompt_start: Type.Optional(Type.Integer(noEffect)),
  },
  { title: "SamplingParams" },
);

export const TokenRequest = Type.Object(
  {
    token_ids: Type.Array(Type.Integer(), { minItems: 1, description: "The prompt." }),
    sampling_params: TokenSampling,
    model: samplingFields.model,
    request_id: samplingFields.request_id,
    stream: samplingFields.stream,
    stream_options: samplingFields.stream_options,
    cache_salt: samplingFields.cache_salt,
    priority: samplingFields.priority,
    kv_transfer_params: samplingFields.kv_transfer_params,
    features: orNull(mustBeAbsent("this model takes no images, audio or video: leave features out")),
    content_parts: orNull(mustBeAbsent("this model takes no images, audio or video: leave content_parts out")),
  },
  { title: "GenerateRequest" },
);

export type TokenBody = Static<typeof TokenRequest>;

const logprob = {
  token: Type.String({ description: "token_id:N" }),
  logprob: Type.Number({ minimum: -9999 }),
  bytes: Type.Null(),
};

const choice = {
  index: Type.Integer(),
  token_ids: Type.Array(Type.Integer()),
  logprobs: nullable(
    Type.Object({
      content: Type.Array(Type.Object({ ...logprob, top_logprobs: Type.Array(Type.Object(logprob)) })),
    }),
  ),
  policy_version: Type.Optional(Type.Integer({ description: "The step of a trained policy." })),
};

export const TokenReply = Type.Object(
  {
    request_id: Type.String(),
    model: Type.String(),
    created: Type.Integer(),
    choices: Type.Array(Type.Object({ ...choice, finish_reason: Type.String() }, { additionalProperties: false })),
    usage: Usage,
    prompt_logprobs: PromptLogprobs,
    kv_transfer_params: nullable(AnyObject),
  },
  { title: "GenerateResponse", additionalProperties: false },
);

export const TokenChunk = Type.Object(
  {
    request_id: Type.String(),
    choices: Type.Array(
      Type.Object({ ...choice, finish_reason: nullable(Type.String()) }, { additionalProperties: false }),
    ),
    usage: nullable(Usage),
  },
  { title: "GenerateChunk", additionalProperties: false },
);
