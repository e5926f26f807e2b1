// Wire schemas of the chat completion request and of a batch of them. Response schemas are in chat.response-schema.ts.
import { type Static, Type } from "typebox";
import { Message } from "../request/message.schema.ts";
import { ExtendedMessage, ExtendedToolChoice, extendedFields } from "../request/openai-extensions.ts";
import { samplingFields } from "../request/sampling.schema.ts";
import { AnyObject, orNull } from "../request/schema-parts.ts";
import { templateFields } from "../request/template-fields.ts";

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
