// Wire schemas of the chat completion request, of a batch of them, and of the replies.
import { type Static, Type } from "typebox";
import { samplingFields } from "../../generation/fields.schema.ts";
import { Message, templateFields } from "../../generation/messages.ts";
import { ExtendedMessage, ExtendedToolChoice, extendedFields } from "../../generation/openai-extensions.ts";
import { PromptLogprobs, TokenLogprob, Usage } from "../../generation/reply.ts";
import { AnyObject, nullable, orNull } from "../../schema/body.ts";

const NamedToolChoice = Type.Object({
  type: Type.Literal("function"),
  function: Type.Object({ name: Type.String() }),
});

export const ChatRequest = Type.Object(
  {
    messages: Type.Array(Message, { description: "The conversation so far; at least one message." }),
    ...samplingFields,
    logprobs: orNull(Type.Boolean(), { default: false, description: "Return log probabilities of output tokens." }),
    top_logprobs: orNull(Type.Integer(), { default: 0, description: "Alternatives per token; -1: whole vocabulary." }),
    max_tokens: orNull(Type.Integer(), { description: "Older name of max_completion_tokens." }),
    max_completion_tokens: orNull(Type.Integer(), {
      description: "Output budget. Default: the rest of the context, or less if the model says so.",
    }),
    ...templateFields,
    tool_choice: Type.Optional(
      Type.Union([Type.Enum(["none", "auto", "required"]), NamedToolChoice, Type.Null()], {
        default: "none",
        description: "Only none, unless the server runs a tool-call parser.",
      }),
    ),
    parallel_tool_calls: orNull(Type.Boolean(), { default: true, description: "false: at most one parsed call." }),
    include_reasoning: Type.Optional(Type.Boolean({ default: true, description: "Include reasoning text." })),
    echo: Type.Optional(
      Type.Boolean({ default: false, description: "Begin the reply with the last message when the roles agree." }),
    ),
    mm_processor_kwargs: orNull(AnyObject, { description: "For multimodal models; carried to the engine, no effect." }),
  },
  { title: "ChatCompletionRequest" },
);

export const BatchRequest = Type.Object(
  {
    ...ChatRequest.properties,
    messages: Type.Array(Type.Array(Message), { description: "The conversations; choice i answers conversation i." }),
  },
  { title: "ChatCompletionBatchRequest" },
);

const extended = { ...extendedFields, tool_choice: ExtendedToolChoice };

/** The same with OpenAI's extensions. */
export const ExtendedChatRequest = Type.Object({
  ...ChatRequest.properties,
  ...extended,
  messages: Type.Array(ExtendedMessage),
});

export const ExtendedBatchRequest = Type.Object({
  ...BatchRequest.properties,
  reasoning_effort: extended.reasoning_effort,
});

export type ChatBody = Static<typeof ChatRequest>;

// Wire schemas of chat replies, for openapi.json and for tests of real replies. chat.reply.ts builds them.

const ChatLogprobs = Type.Object({ content: Type.Array(TokenLogprob) }, { title: "ChatLogprobs" });

const StopReason = Type.Union([Type.Integer(), Type.String(), Type.Null()], {
  description: "Stop token id, stop string, repetition_detected, or null.",
});

const FinishReason = Type.Enum(["stop", "length", "tool_calls", "repetition", "abort"]);
const TokenIds = nullable(Type.Array(Type.Integer()));

const PolicyVersion = Type.Optional(Type.Integer({ description: "Step of the trained policy that answered." }));

export const ToolCall = Type.Union([
  Type.Object({
    id: Type.String(),
    type: Type.Literal("function"),
    function: Type.Object({ name: Type.String(), arguments: Type.String() }),
  }),
  Type.Object({
    id: Type.String(),
    type: Type.Literal("custom"),
    custom: Type.Object({ name: Type.String(), input: Type.String() }),
  }),
]);

const ReplyMessage = Type.Object(
  {
    role: Type.String(),
    content: nullable(Type.String()),
    refusal: Type.Null(),
    annotations: Type.Null(),
    audio: Type.Null(),
    function_call: Type.Null(),
    tool_calls: Type.Array(ToolCall),
    reasoning: nullable(Type.String()),
    reasoning_content: Type.Optional(nullable(Type.String())),
  },
  { additionalProperties: false },
);

export const ChatReply = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal("chat.completion"),
    created: Type.Integer(),
    model: Type.String(),
    choices: Type.Array(
      Type.Object(
        {
          index: Type.Integer(),
          message: ReplyMessage,
          logprobs: nullable(ChatLogprobs),
          finish_reason: FinishReason,
          stop_reason: StopReason,
          token_ids: TokenIds,
          policy_version: PolicyVersion,
          prompt_token_ids: Type.Optional(TokenIds),
        },
        { additionalProperties: false },
      ),
    ),
    service_tier: Type.Null(),
    system_fingerprint: nullable(Type.String()),
    usage: Usage,
    prompt_logprobs: PromptLogprobs,
    prompt_token_ids: TokenIds,
    kv_transfer_params: nullable(AnyObject),
  },
  { title: "ChatCompletion", additionalProperties: false },
);

export const ToolCallDelta = Type.Object({
  index: Type.Integer(),
  id: Type.Optional(Type.String()),
  type: Type.Optional(Type.Enum(["function", "custom"])),
  function: Type.Optional(Type.Object({ name: Type.Optional(Type.String()), arguments: Type.Optional(Type.String()) })),
  custom: Type.Optional(Type.Object({ name: Type.Optional(Type.String()), input: Type.Optional(Type.String()) })),
});

export const ChatChunk = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal("chat.completion.chunk"),
    created: Type.Integer(),
    model: Type.String(),
    choices: Type.Array(
      Type.Object(
        {
          index: Type.Integer(),
          delta: Type.Object(
            {
              role: Type.Optional(Type.String()),
              content: Type.Optional(Type.String()),
              reasoning: Type.Optional(Type.String()),
              reasoning_content: Type.Optional(Type.String()),
              tool_calls: Type.Optional(Type.Array(ToolCallDelta)),
            },
            { additionalProperties: false },
          ),
          logprobs: nullable(ChatLogprobs),
          finish_reason: nullable(FinishReason),
          stop_reason: Type.Optional(StopReason),
          token_ids: Type.Optional(TokenIds),
          policy_version: PolicyVersion,
        },
        { additionalProperties: false },
      ),
      { description: "One choice; none in the usage chunk." },
    ),
    prompt_token_ids: Type.Optional(TokenIds),
    system_fingerprint: Type.Optional(Type.String()),
    usage: Type.Optional(Usage),
  },
  { title: "ChatCompletionChunk", additionalProperties: false },
);
