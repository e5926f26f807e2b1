// Wire schemas of the Messages API of Anthropic. Content blocks and tools have many variants, most of which Anthropic hosts;
// messages.translate.ts reads them and says why one is refused.
import { type Static, Type } from "typebox";
import { samplingFields } from "../../generation/fields.schema.ts";
import { AnyObject, int64, mustBeAbsent, nullable, orNull } from "../../schema/body.ts";

const { stream, temperature, top_p, top_k, cache_salt } = samplingFields;

const Blocks = Type.Union([Type.String(), Type.Array(AnyObject)]);

const prompt = {
  model: orNull(Type.String(), { description: "A served model or adapter." }),
  messages: Type.Array(
    Type.Object({ role: Type.Enum(["user", "assistant", "system"]), content: Blocks }, { title: "MessageParam" }),
    { description: "The conversation. A last message of the assistant is continued." },
  ),
  system: orNull(Blocks, { description: "A text, or text blocks." }),
  tools: orNull(Type.Array(AnyObject), { description: "Tools with an input_schema. Tools of Anthropic are refused." }),
  tool_choice: orNull(
    Type.Object({
      type: Type.Enum(["auto", "any", "tool", "none"]),
      name: orNull(Type.String()),
      disable_parallel_tool_use: orNull(Type.Boolean()),
    }),
  ),
  thinking: orNull(
    Type.Object({
      type: Type.Enum(["enabled", "disabled", "adaptive", "between_tools"]),
      budget_tokens: orNull(Type.Integer({ minimum: 1 }), { description: "enabled: maximum tokens of thinking." }),
    }),
    { description: "disabled turns thinking off where the chat template can. Left out: as the model does." },
  ),
  output_config: orNull(
    Type.Object({
      effort: orNull(Type.Enum(["low", "medium", "high", "xhigh", "max"])),
      format: orNull(Type.Object({ type: Type.Literal("json_schema"), schema: AnyObject })),
    }),
    { description: "format: the JSON Schema that the output must follow. effort: passed to the chat template." },
  ),
};

export const MessagesRequest = Type.Object(
  {
    ...prompt,
    max_tokens: Type.Integer({ minimum: 1, description: "Output budget, thinking included." }),
    stop_sequences: orNull(Type.Array(Type.String()), { description: "Strings that end the output." }),
    ...{ stream, temperature, top_p, top_k },
    priority: Type.Optional(
      int64({
        default: 0,
        description: "Lower values are scheduled earlier. An extension, which X-Vllm-Priority sets too.",
      }),
    ),
    cache_salt,
    metadata: orNull(AnyObject, { description: "Accepted without effect." }),
    service_tier: orNull(Type.String(), { description: "Accepted without effect." }),
    container: orNull(mustBeAbsent("containers are not offered here")),
    mcp_servers: orNull(
      mustBeAbsent("this server calls no MCP servers; an agent can, and offer their tools as its own"),
    ),
  },
  { title: "MessagesRequest" },
);

export const CountTokensRequest = Type.Object(prompt, { title: "CountTokensRequest" });

export type PromptBody = Static<typeof CountTokensRequest>;
export type MessagesBody = Static<typeof MessagesRequest>;

const Block = Type.Union(
  [
    Type.Object({ type: Type.Literal("thinking"), thinking: Type.String(), signature: Type.String() }),
    Type.Object({ type: Type.Literal("text"), text: Type.String(), citations: Type.Null() }),
    Type.Object({ type: Type.Literal("tool_use"), id: Type.String(), name: Type.String(), input: AnyObject }),
  ],
  { title: "ContentBlock" },
);

const MessageUsage = Type.Object({
  input_tokens: Type.Integer({ description: "Prompt tokens that were not in the prefix cache." }),
  cache_creation_input_tokens: Type.Integer(),
  cache_read_input_tokens: Type.Integer({ description: "Prompt tokens from the prefix cache." }),
  output_tokens: Type.Integer(),
});

export const MessageReply = Type.Object(
  {
    id: Type.String(),
    type: Type.Literal("message"),
    role: Type.Literal("assistant"),
    model: Type.String(),
    content: Type.Array(Block),
    stop_reason: Type.Enum(["end_turn", "max_tokens", "stop_sequence", "tool_use"]),
    stop_sequence: nullable(Type.String()),
    usage: MessageUsage,
    policy_version: Type.Optional(Type.Integer({ description: "Step of the trained policy that answered." })),
  },
  { title: "MessagesReply", additionalProperties: false },
);

export const MessageEvent = Type.Object(
  { type: Type.String() },
  { title: "MessageEvent", description: "message_start, …, message_stop; the type says which other fields." },
);

export const TokenCount = Type.Object({ input_tokens: Type.Integer() }, { title: "TokenCount" });

export const MessagesError = Type.Object(
  {
    type: Type.Literal("error"),
    error: Type.Object({ type: Type.String(), message: Type.String() }),
    request_id: nullable(Type.String()),
  },
  { title: "MessagesError" },
);
