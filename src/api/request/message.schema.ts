// Wire schemas for messages and tools. The role selects the variant of a message; the last variant covers all other
// roles. Content is a string or a list of parts; for assistant and function it may be null.
import { type Static, type TSchema, Type } from "typebox";
import { AnyObject, orNull } from "./schema-parts.ts";

const ContentPart = Type.Union(
  [
    Type.String({ description: "A bare string is a text part." }),
    Type.Unsafe<Record<string, unknown>>({
      type: "object",
      additionalProperties: true,
      description: "Text parts: type text, input_text, output_text, refusal or thinking.",
    }),
  ],
  { title: "ContentPart" },
);

const Content = Type.Union([Type.String(), Type.Array(ContentPart)]);
const NullableContent = Type.Union([Type.String(), Type.Array(ContentPart), Type.Null()]);
const Name = Type.Optional(Type.String());

const ToolFunction = Type.Object({
  name: Type.String(),
  description: orNull(Type.String()),
  parameters: orNull(AnyObject),
  strict: orNull(Type.Boolean()),
});

export const Tool = Type.Object(
  { type: Type.Optional(Type.Literal("function", { default: "function" })), function: ToolFunction },
  { title: "Tool" },
);

export const FunctionCall = Type.Object(
  {
    id: orNull(Type.String()),
    type: Type.Optional(Type.Literal("function")),
    function: Type.Object({
      name: Type.String(),
      arguments: Type.Optional(
        Type.Union([Type.String(), AnyObject, Type.Null()], { description: "JSON text or an object." }),
      ),
    }),
  },
  { title: "InputToolCall" },
);

const plain = <R extends string>(role: R) =>
  Type.Object({ role: Type.Literal(role), content: Type.Optional(Content), name: Name });

/** `toolCall`: schema of the calls of an assistant. */
export function messageOf<M extends { role: string }>(toolCall: TSchema) {
  const variants = [
    Type.Object({
      role: Type.Literal("developer"),
      content: Type.Optional(Content),
      name: Name,
      tools: orNull(Type.Array(Tool)),
    }),
    plain("system"),
    plain("user"),
    Type.Object({
      role: Type.Literal("assistant"),
      content: Type.Optional(NullableContent),
      name: Name,
      tool_calls: orNull(Type.Array(toolCall)),
      reasoning: orNull(Type.String()),
      reasoning_content: orNull(Type.String(), { description: "Older name of reasoning." }),
    }),
    Type.Object({
      role: Type.Literal("tool"),
      content: Type.Optional(Content),
      name: Name,
      tool_call_id: orNull(Type.String()),
    }),
    Type.Object({ role: Type.Literal("function"), content: Type.Optional(NullableContent), name: Name }),
    Type.Object({ role: Type.String(), content: Type.Optional(Content), name: Name }),
  ];
  const union = Type.Union(variants, { title: "Message" });
  return Type.Unsafe<M>({ ...union, discriminator: { propertyName: "role" } });
}

export const Message = messageOf<WireMessage>(FunctionCall);

export type WireContentPart = Static<typeof ContentPart>;
export type WireTool = Static<typeof Tool>;
export type WireToolCall = Static<typeof FunctionCall>;

/** The fields of all variants. The role decides which are present. */
export interface WireMessage {
  role: string;
  content?: string | WireContentPart[] | null;
  name?: string;
  tools?: WireTool[] | null;
  tool_calls?: WireToolCall[] | null;
  tool_call_id?: string | null;
  reasoning?: string | null;
  reasoning_content?: string | null;
}
