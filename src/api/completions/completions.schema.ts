// Wire schemas for text completions, the older dialect with raw prompts instead of messages.
import { type Static, Type } from "typebox";
import { samplingFields } from "../request/sampling.schema.ts";
import { AnyObject, nullable, orNull } from "../request/schema-parts.ts";
import { PromptLogprobs, Usage } from "../run/reply.schema.ts";
import { Forwarded } from "./forwarded.schema.ts";

const TokenArray = Type.Array(Type.Integer());

export const CompletionRequest = Type.Object(
  {
    prompt: Type.Unsafe<string | string[] | number[] | number[][]>(
      Type.Union([Type.String(), Type.Array(Type.String()), TokenArray, Type.Array(TokenArray)], {
        description: "A string, a list of strings, a list of token ids, or a list of token id lists.",
      }),
    ),
    ...samplingFields,
    max_tokens: orNull(Type.Integer(), { default: 16, description: "Output budget; 0 is allowed only with echo." }),
    logprobs: orNull(Type.Integer(), { description: "Return log probabilities, with the N most likely tokens." }),
    echo: Type.Optional(Type.Boolean({ default: false, description: "Begin the text with the prompt." })),
    suffix: orNull(Type.String(), { description: "Not supported." }),
    forwarded: orNull(Forwarded, {
      description: "From a Flywheel server that uses this one as its engine: what it worked out from a chat request.",
    }),
  },
  { title: "CompletionRequest" },
);

export type CompletionBody = Static<typeof CompletionRequest>;

export const TextLogprobs = Type.Object({
  text_offset: Type.Array(Type.Integer()),
  token_logprobs: Type.Array(nullable(Type.Number())),
  tokens: Type.Array(Type.String()),
  top_logprobs: Type.Array(nullable(Type.Record(Type.String(), Type.Number()))),
});

const Choice = Type.Object(
  {
    index: Type.Integer({ description: "prompt index · n + choice" }),
    text: Type.String(),
    logprobs: nullable(TextLogprobs),
    finish_reason: nullable(Type.String()),
    stop_reason: Type.Union([Type.Integer(), Type.String(), Type.Null()]),
    token_ids: nullable(TokenArray),
    prompt_logprobs: Type.Optional(PromptLogprobs),
    prompt_token_ids: Type.Optional(nullable(TokenArray)),
  },
  { additionalProperties: false },
);

const head = {
  id: Type.String(),
  object: Type.Literal("text_completion"),
  created: Type.Integer(),
  model: Type.String(),
  choices: Type.Array(Choice),
};

export const CompletionReply = Type.Object(
  {
    ...head,
    service_tier: Type.Null(),
    system_fingerprint: nullable(Type.String()),
    usage: Usage,
    kv_transfer_params: nullable(AnyObject),
  },
  { title: "Completion", additionalProperties: false },
);

export const CompletionChunk = Type.Object(
  { ...head, system_fingerprint: Type.Optional(Type.String()), usage: Type.Optional(Usage) },
  { title: "CompletionChunk", additionalProperties: false },
);
