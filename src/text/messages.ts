// A conversation as chat templates see it. The API reads it from requests and training data (api/generation/messages.ts).
// Everything below the API trusts it.
import type { TemplateFacts } from "./template/inspect.ts";
import { ArgumentsJson } from "./template/values.ts";

export interface ChatMessage {
  role: string;
  /** The texts of the content in order; empty without content. */
  texts: string[];
  name?: string;
  reasoning?: string;
  toolCalls?: ChatToolCall[];
  toolCallId?: string;
  /** Only in developer messages. */
  tools?: ChatTool[];
}

export interface ChatToolCall {
  id?: string;
  type: "function";
  /** Arguments are values, not JSON text. */
  function: { name: string; arguments: unknown };
}

/** In the exact form that templates print: models were trained on prompts that show an omitted field as null. */
export interface ChatTool {
  type: "function";
  function: { name: string; description: string | null; parameters: unknown; strict?: unknown };
}

export type ChatDocument = Readonly<Record<string, string>>;

/** The text of a message where one string is wanted. */
export function joinedText({ texts }: ChatMessage): string {
  return texts.join("\n");
}

// Messages in the form a template expects: content as one string (texts joined by a newline) or as a list of parts,
// reasoning under both its names, developer messages as system messages where the template does not know them. As in vLLM,
// null content is empty content. But a template that tells null content apart, as those of DeepSeek-R1-Distill do, would then
// drop tool calls or add an empty turn, so it gets null beside tool calls.

type Content = string | { type: "text"; text: string }[] | null;

export interface TemplateMessage {
  role: string;
  content: Content;
  [field: string]: unknown;
}

export function toTemplateMessages(
  messages: readonly ChatMessage[],
  facts: TemplateFacts,
  knowsDeveloper: boolean,
): TemplateMessage[] {
  const known = knowsDeveloper ? messages : developerAsSystem(messages);
  return known.map((message) => ({
    role: message.role,
    content: contentOf(message, facts),
    ...(message.name === undefined ? {} : { name: message.name }),
    ...(message.reasoning === undefined ? {} : { reasoning: message.reasoning, reasoning_content: message.reasoning }),
    ...(message.toolCalls === undefined ? {} : { tool_calls: message.toolCalls.map(withArguments) }),
    ...(message.toolCallId === undefined ? {} : { tool_call_id: message.toolCallId }),
    ...(message.role === "developer" ? { tools: message.tools ?? null } : {}),
  }));
}

/** Every field of the call as it is, with its arguments marked as such. */
function withArguments(call: ChatToolCall): Record<string, unknown> {
  return { ...call, function: { ...call.function, arguments: new ArgumentsJson(call.function.arguments) } };
}

function contentOf(message: ChatMessage, { contentFormat, knowsNullContent }: TemplateFacts): Content {
  if (knowsNullContent && message.toolCalls !== undefined && message.texts.length === 0) return null;
  // Tool results are a string in every format: templates rarely expect parts there.
  if (contentFormat === "string" || message.role === "tool") return joinedText(message);
  return message.texts.map((text) => ({ type: "text", text }));
}

/** With developer messages renamed there may be several system messages: they become one, in front. */
function developerAsSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  if (!messages.some((message) => message.role === "developer")) return messages;
  const isSystem = (message: ChatMessage): boolean => message.role === "system" || message.role === "developer";
  const text = messages.filter(isSystem).map(joinedText).join("\n\n");
  return [{ role: "system", texts: [text] }, ...messages.filter((message) => !isSystem(message))];
}
