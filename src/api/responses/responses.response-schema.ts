// Wire schemas of responses, for openapi.json and for tests of real replies.
import { Type } from "typebox";
import { AnyObject, nullable } from "../request/schema-parts.ts";
import { TokenLogprob } from "../run/reply.schema.ts";

const Status = Type.Enum(["in_progress", "completed", "incomplete"]);

const OutputItem = Type.Union(
  [
    Type.Object({
      id: Type.String(),
      type: Type.Literal("reasoning"),
      status: Status,
      summary: Type.Array(AnyObject, { maxItems: 0 }),
      content: Type.Array(Type.Object({ type: Type.Literal("reasoning_text"), text: Type.String() })),
      encrypted_content: Type.Null(),
    }),
    Type.Object({
      id: Type.String(),
      type: Type.Literal("message"),
      status: Status,
      role: Type.Literal("assistant"),
      content: Type.Array(
        Type.Object({
          type: Type.Literal("output_text"),
          text: Type.String(),
          annotations: Type.Array(AnyObject, { maxItems: 0 }),
          logprobs: Type.Array(TokenLogprob),
        }),
      ),
    }),
    Type.Object({
      id: Type.String(),
      type: Type.Literal("function_call"),
      status: Status,
      call_id: Type.String(),
      name: Type.String(),
      arguments: Type.String(),
    }),
    Type.Object({
      id: Type.String(),
      type: Type.Literal("custom_tool_call"),
      status: Status,
      call_id: Type.String(),
      name: Type.String(),
      input: Type.String(),
    }),
  ],
  { title: "OutputItem" },
);

const ResponseUsage = Type.Object({
  input_tokens: Type.Integer(),
  input_tokens_details: Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Integer() }),
  output_tokens: Type.Integer(),
  output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
  total_tokens: Type.Integer(),
});

export const ResponseObject = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal("response"),
    created_at: Type.Integer(),
    completed_at: nullable(Type.Integer()),
    status: Type.Enum(["in_progress", "completed", "incomplete", "failed"]),
    background: Type.Literal(false),
    error: nullable(Type.Object({ code: Type.String(), message: Type.String() })),
    incomplete_details: nullable(Type.Object({ reason: Type.Literal("max_output_tokens") })),
    instructions: nullable(Type.String()),
    max_output_tokens: nullable(Type.Integer()),
    max_tool_calls: nullable(Type.Integer()),
    metadata: Type.Record(Type.String(), Type.String()),
    model: Type.String(),
    output: Type.Array(OutputItem),
    parallel_tool_calls: Type.Boolean(),
    previous_response_id: nullable(Type.String()),
    prompt_cache_key: nullable(Type.String()),
    reasoning: Type.Object({ effort: nullable(Type.String()), summary: Type.Null() }),
    safety_identifier: nullable(Type.String()),
    service_tier: Type.Literal("default"),
    store: Type.Boolean({ description: "Whether it is kept." }),
    temperature: Type.Number(),
    text: Type.Object({ format: AnyObject }),
    tool_choice: Type.Union([Type.String(), AnyObject]),
    tools: Type.Array(AnyObject),
    top_logprobs: Type.Integer(),
    top_p: Type.Number(),
    truncation: Type.Enum(["auto", "disabled"]),
    usage: nullable(ResponseUsage),
    user: nullable(Type.String()),
    policy_version: Type.Optional(Type.Integer({ description: "Step of the trained policy that answered." })),
  },
  { title: "Response", additionalProperties: false },
);

export const ResponseEvent = Type.Object(
  { type: Type.String(), sequence_number: Type.Integer() },
  { title: "ResponseEvent", description: "response.created, …, response.completed; the type says which other fields." },
);

export const DeletedResponse = Type.Object(
  { id: Type.String(), object: Type.Literal("response"), deleted: Type.Literal(true) },
  { title: "DeletedResponse" },
);

export const InputItems = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(AnyObject),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
    has_more: Type.Boolean(),
  },
  { title: "InputItems" },
);
