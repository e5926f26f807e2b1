// Wire schema of a request of the Responses API. Items, tools and tool choices have many variants, most of which are hosted
// by OpenAI; items.ts and responses.translate.ts read them and say why one is refused.
import { type Static, Type } from "typebox";
import { samplingFields } from "../../generation/fields.schema.ts";
import { ReasoningEffort } from "../../generation/openai-extensions.ts";
import { TokenLogprob } from "../../generation/reply.ts";
import { AnyObject, mustBeAbsent, nullable, orNull, Variables } from "../../schema/body.ts";

const TextFormat = Type.Object({
  type: Type.Enum(["text", "json_object", "json_schema"]),
  name: orNull(Type.String()),
  description: orNull(Type.String()),
  schema: orNull(AnyObject, { description: "json_schema: the JSON Schema that the output must follow." }),
  strict: orNull(Type.Boolean(), { description: "Accepted without effect: the output always follows the schema." }),
});

const Reasoning = Type.Object({
  effort: orNull(ReasoningEffort, {
    description: "Passed to the chat template as low, medium or high; none turns thinking off.",
  }),
  summary: orNull(Type.String(), { description: "Accepted without effect: the reasoning itself is returned." }),
  generate_summary: orNull(Type.String(), { description: "Older name of summary." }),
});

const {
  model,
  stream,
  temperature,
  top_p,
  cache_salt,
  priority,
  user,
  seed,
  top_k,
  min_p,
  repetition_penalty,
  frequency_penalty,
  presence_penalty,
} = samplingFields;

export const ResponsesRequest = Type.Object(
  {
    model,
    input: Type.Optional(
      Type.Union([Type.String(), Type.Array(AnyObject)], {
        description:
          "A user message, or items: message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning and item_reference.",
      }),
    ),
    instructions: orNull(Type.String(), { description: "A system message in front. Not inherited by continuations." }),
    previous_response_id: orNull(Type.String(), { description: "Continue this stored response." }),
    store: orNull(Type.Boolean(), { default: true, description: "Keep the response for reading and continuing." }),
    stream,
    stream_options: orNull(AnyObject, { description: "Accepted without effect." }),
    max_output_tokens: orNull(Type.Integer({ minimum: 1 }), { description: "Output budget, reasoning included." }),
    ...{ temperature, top_p },
    tools: orNull(Type.Array(AnyObject), {
      description: "Functions, and custom tools with --enable-openai-extensions. Hosted tools are refused.",
    }),
    tool_choice: Type.Optional(
      Type.Union([Type.Enum(["none", "auto", "required"]), AnyObject, Type.Null()], {
        description: "Also {type: function, name}, {type: custom, name} and {type: allowed_tools, mode, tools}.",
      }),
    ),
    parallel_tool_calls: orNull(Type.Boolean(), { default: true, description: "false: at most one parsed call." }),
    max_tool_calls: orNull(Type.Integer(), { description: "Accepted without effect: it counts hosted tools." }),
    text: orNull(Type.Object({ format: orNull(TextFormat), verbosity: orNull(Type.String()) })),
    reasoning: orNull(Reasoning),
    include: orNull(Type.Array(Type.String()), {
      description: "message.output_text.logprobs adds log probabilities. Other values have no effect.",
    }),
    top_logprobs: orNull(Type.Integer({ minimum: 0 }), { description: "Alternatives per token of the message." }),
    truncation: orNull(Type.Enum(["auto", "disabled"]), {
      default: "disabled",
      description: "auto: cut a prompt that is too long at its beginning.",
    }),
    metadata: orNull(
      Type.Record(Type.String(), Type.String({ maxLength: 512 }), {
        maxProperties: 16,
        propertyNames: { maxLength: 64 },
      }),
      { description: "At most 16 texts, returned with the response." },
    ),
    ...{ seed, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty },
    chat_template_kwargs: orNull(Variables, { description: "Additional template variables." }),
    ...{ cache_salt, priority },
    prompt_cache_key: orNull(Type.String(), { description: "Accepted without effect: prefixes are found by content." }),
    safety_identifier: orNull(Type.String(), { description: "Accepted without effect." }),
    service_tier: orNull(Type.String(), { description: "Accepted without effect." }),
    user,
    background: orNull(Type.Boolean(), { description: "true is refused: a response runs while its client waits." }),
    conversation: orNull(mustBeAbsent("conversations are not offered here: use previous_response_id")),
    prompt: orNull(mustBeAbsent("prompt templates are not offered here: send instructions and input")),
    context_management: orNull(mustBeAbsent("compaction is not offered here: send fewer items")),
  },
  { title: "ResponsesRequest" },
);

export type ResponsesBody = Static<typeof ResponsesRequest>;

// Wire schemas of responses, for openapi.json and for tests of real replies.

const Status = Type.Enum(["in_progress", "completed", "incomplete"]);

/** What every item has. */
const own = <T extends string>(type: T) => ({ id: Type.String(), type: Type.Literal(type), status: Status });

const OutputItem = Type.Union(
  [
    Type.Object({
      ...own("reasoning"),
      summary: Type.Array(AnyObject, { maxItems: 0 }),
      content: Type.Array(Type.Object({ type: Type.Literal("reasoning_text"), text: Type.String() })),
      encrypted_content: Type.Null(),
    }),
    Type.Object({
      ...own("message"),
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
      ...own("function_call"),
      call_id: Type.String(),
      name: Type.String(),
      arguments: Type.String(),
    }),
    Type.Object({
      ...own("custom_tool_call"),
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
