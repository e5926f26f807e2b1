// Converts parsed messages, tools and tool calls to the form that chat templates see. Content becomes a list of texts,
// arguments become values, reasoning gets one name. Throws a PromptError with the path of a value it cannot convert.
import { type Static, type TSchema, Type } from "typebox";
import type { Config } from "../../config/options.ts";
import { invalidCombination, ServiceError } from "../../errors/service-error.ts";
import { markNumbers } from "../../json/exact-json.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { ChatMessage, ChatTool, ChatToolCall } from "../../text/messages.ts";
import type { ChatInput } from "../../text/prompt.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { InnerJson } from "../http/body.ts";
import { AnyObject, orNull, Variables } from "../schema/body.ts";

// Wire schemas for messages and tools. The role selects the variant of a message; the last variant covers all other
// roles. Content is a string or a list of parts; for assistant and function it may be null.

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

const message = (role: TSchema, more: Record<string, TSchema> = {}, content: TSchema = Content) =>
  Type.Object({ role, content: Type.Optional(content), name: Name, ...more });

/** `toolCall`: schema of the calls of an assistant. */
export function messageOf<M extends { role: string }>(toolCall: TSchema) {
  const assistant = {
    tool_calls: orNull(Type.Array(toolCall)),
    reasoning: orNull(Type.String()),
    reasoning_content: orNull(Type.String(), { description: "Older name of reasoning." }),
  };
  const variants = [
    message(Type.Literal("developer"), { tools: orNull(Type.Array(Tool)) }),
    message(Type.Literal("system")),
    message(Type.Literal("user")),
    message(Type.Literal("assistant"), assistant, NullableContent),
    message(Type.Literal("tool"), { tool_call_id: orNull(Type.String()) }),
    message(Type.Literal("function"), {}, NullableContent),
    message(Type.String()),
  ];
  const union = Type.Union(variants, { title: "ChatMessage" });
  return Type.Unsafe<M>({ ...union, discriminator: { propertyName: "role" } });
}

export const Message = messageOf<WireMessage>(FunctionCall);

type WireContentPart = Static<typeof ContentPart>;
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

/** `path` locates what cannot be read, for example `messages.3.content`. */
export function refuseContent(path: string, message: string): ServiceError {
  return new ServiceError("unsupported_content", `${path}: ${message}`, { param: path });
}

/** A text that another dialect has at this path. */
export function textAt(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw refuseContent(path, "expected a string.");
}

/** Part type → the field that holds its text. */
const TEXT_FIELDS = new Map([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["refusal", "refusal"],
  ["thinking", "thinking"],
]);

const MEDIA_TYPES = /^(input_)?(image|audio|video|file)(_url|_pil|_embeds)?$/;

export function chatMessages(messages: readonly WireMessage[]): ChatMessage[] {
  if (messages.length === 0) throw invalid("messages", "There must be at least one message.");
  const inner = new InnerJson();
  return messages.map((message, index) => chatMessage(message, `messages.${index}`, inner));
}

/** `path` locates the message in errors. `inner` reads the arguments of tool calls. */
export function chatMessage(message: WireMessage, path: string, inner = new InnerJson()): ChatMessage {
  const { role, content, name, tool_call_id, tool_calls, tools } = message;
  const reasoning = message.reasoning ?? message.reasoning_content ?? null;
  return {
    role,
    texts: textsOf(content ?? [], `${path}.content`),
    ...(name === undefined ? {} : { name }),
    ...(reasoning === null ? {} : { reasoning }),
    ...(tool_calls?.length
      ? { toolCalls: tool_calls.map((call, i) => chatToolCall(call, `${path}.tool_calls.${i}`, inner)) }
      : {}),
    ...((tool_call_id ?? null) === null ? {} : { toolCallId: tool_call_id! }),
    ...(tools?.length ? { tools: tools.map(chatTool) } : {}),
  };
}

/** A function as other dialects describe it, with fields of any type. */
export function functionTool(name: string, { description, parameters, strict }: JsonObject): WireTool {
  return {
    type: "function",
    function: {
      name,
      ...(typeof description === "string" ? { description } : {}),
      ...(isJsonObject(parameters) ? { parameters } : {}),
      ...(typeof strict === "boolean" ? { strict } : {}),
    },
  };
}

/** null if `tools` is null, absent or empty. */
export function chatTools(tools: readonly WireTool[] | null | undefined): ChatTool[] | null {
  return tools?.length ? tools.map(chatTool) : null;
}

function chatTool({ function: { name, description, parameters, strict } }: WireTool): ChatTool {
  const shown = { name, description: description ?? null, parameters: parameters ?? null };
  return { type: "function", function: strict === undefined ? shown : { ...shown, strict } };
}

function textsOf(content: string | readonly WireContentPart[], path: string): string[] {
  if (typeof content === "string") return [content];
  return content.flatMap((part, index) => textOf(part, `${path}.${index}`) ?? []);
}

/** null if the part's text is null; such parts are skipped. */
function textOf(part: WireContentPart, path: string): string | null {
  if (typeof part === "string") return part;
  const { type } = part;
  const wrongType = (message: string) => new PromptError("invalid_part_type", `${path}.type`, message);
  if (typeof type !== "string") throw wrongType("A content part needs a type, for example text.");
  const field = TEXT_FIELDS.get(type);
  if (field === undefined) {
    const reason = MEDIA_TYPES.test(type) ? "this model reads text only" : "use text";
    throw wrongType(`Content parts of the type ${JSON.stringify(type)} are not supported: ${reason}.`);
  }
  const text = part[field];
  if (text === null || typeof text === "string") return text;
  throw invalid(`${path}.${field}`, `A part of the type ${type} needs a string here.`);
}

function chatToolCall(
  { id, function: { name, arguments: args } }: WireToolCall,
  path: string,
  inner: InnerJson,
): ChatToolCall {
  return {
    ...((id ?? null) === null ? {} : { id: id! }),
    type: "function",
    function: { name, arguments: argumentValues(args ?? "", `${path}.function.arguments`, inner) },
  };
}

/** Clients send JSON text, but templates expect values. Empty text means no arguments. */
function argumentValues(args: string | Record<string, unknown>, path: string, inner: InnerJson): unknown {
  if (args === "") return {};
  if (typeof args !== "string") return args;
  try {
    return inner.parse(args, markNumbers);
  } catch (cause) {
    if (cause instanceof ServiceError) throw invalid(path, cause.message, cause);
    throw invalid(path, "Arguments are not valid JSON.", cause);
  }
}

function invalid(path: string, message: string, cause?: unknown): PromptError {
  return new PromptError("invalid_message", path, message, { cause });
}

// Request fields of chat completions and /tokenize that shape the prompt through the chat template, and their
// conversion for the text layer.

export const templateFields = {
  tools: orNull(Type.Array(Tool), { description: "Shown to the model through the chat template." }),
  documents: orNull(Type.Array(Type.Record(Type.String(), Type.String())), {
    description: "Documents, each with title and text, for templates that use them.",
  }),
  reasoning_effort: orNull(Type.Enum(["low", "medium", "high"]), { description: "Passed to the chat template." }),
  add_generation_prompt: Type.Optional(
    Type.Boolean({ default: true, description: "End the prompt with the opening of an assistant turn." }),
  ),
  continue_final_message: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Leave the last message open and continue it. Needs add_generation_prompt: false.",
    }),
  ),
  chat_template: orNull(Type.String(), { description: "A Jinja template to use instead of the model's." }),
  chat_template_kwargs: orNull(Variables, { description: "Additional template variables." }),
};

const TemplateFields = Type.Object(templateFields);

export type TemplateBody = Static<typeof TemplateFields>;

interface PromptBody extends TemplateBody {
  messages: readonly WireMessage[];
  add_special_tokens?: boolean;
}

/** Throws a PromptError for a message that templates cannot take. `client` is the caller's id. */
export function chatInput(body: PromptBody, client: string): ChatInput {
  return {
    messages: chatMessages(body.messages),
    tools: chatTools(body.tools),
    documents: body.documents ?? null,
    reasoningEffort: body.reasoning_effort ?? null,
    addGenerationPrompt: body.add_generation_prompt ?? true,
    continueFinalMessage: body.continue_final_message ?? false,
    addSpecialTokens: body.add_special_tokens ?? false,
    chatTemplate: body.chat_template ?? null,
    chatTemplateKwargs: body.chat_template_kwargs ?? null,
    client,
  };
}

export function checkContinuation(body: TemplateBody): void {
  if (body.continue_final_message !== true || body.add_generation_prompt === false) return;
  const message =
    "continue_final_message cannot be used together with add_generation_prompt (true by default): " +
    "send add_generation_prompt: false.";
  throw invalidCombination(message);
}

/** A template may arrive as a field or as a template variable of the same name. */
export function checkTemplateTrust(
  body: TemplateBody,
  { trustRequestChatTemplate }: Pick<Config, "trustRequestChatTemplate">,
): void {
  const bringsOne = (body.chat_template ?? null) !== null || body.chat_template_kwargs?.chat_template !== undefined;
  if (bringsOne && !trustRequestChatTemplate) {
    const message = "This server does not accept chat templates from requests (--trust-request-chat-template).";
    throw new ServiceError("template_refused", message, { param: "chat_template" });
  }
}
