// Parts of a reply that chat and text completions share.
import { Type } from "typebox";
import { nullable } from "../request/schema-parts.ts";

export const Usage = Type.Object(
  {
    prompt_tokens: Type.Integer(),
    total_tokens: Type.Integer(),
    completion_tokens: Type.Integer(),
    prompt_tokens_details: Type.Optional(nullable(Type.Object({ cached_tokens: Type.Integer() }))),
    completion_tokens_details: Type.Optional(Type.Object({ reasoning_tokens: Type.Integer() })),
  },
  { title: "Usage", additionalProperties: false },
);

export const Logprob = Type.Object({
  token: Type.String(),
  logprob: Type.Number({ minimum: -9999 }),
  bytes: Type.Array(Type.Integer()),
});

export const TokenLogprob = Type.Intersect([Logprob, Type.Object({ top_logprobs: Type.Array(Logprob) })]);

export const PromptLogprobs = nullable(
  Type.Array(
    nullable(
      Type.Record(
        Type.String(),
        Type.Object({ logprob: Type.Number({ minimum: -9999 }), rank: Type.Integer(), decoded_token: Type.String() }),
      ),
    ),
    { description: "One entry per prompt token, the first null; keys are token ids." },
  ),
);
