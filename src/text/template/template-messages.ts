// Messages in the form a template expects: content as one string (texts joined by a newline) or as a list of parts,
// reasoning under both its names, developer messages as system messages where the template does not know them.

import { type ChatMessage, type ChatToolCall, joinedText } from "../messages.ts";
import type { ContentFormat } from "./inspect.ts";
import { ArgumentsJson } from "./values.ts";

export interface TemplateMessage {
  role: string;
  content: string | { type: "text"; text: string }[];
  [field: string]: unknown;
}

export function toTemplateMessages(
  messages: readonly ChatMessage[],
  format: ContentFormat,
  knowsDeveloper: boolean,
): TemplateMessage[] {
  const known = knowsDeveloper ? messages : developerAsSystem(messages);
  return known.map((message) => ({
    role: message.role,
    // Tool results are a string in every format: templates rarely expect parts there.
    content: format === "string" || message.role === "tool" ? joinedText(message) : parts(message),
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

function parts(message: ChatMessage): { type: "text"; text: string }[] {
  return message.texts.map((text) => ({ type: "text", text }));
}

/** With developer messages renamed there may be several system messages: they become one, in front. */
function developerAsSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  if (!messages.some((message) => message.role === "developer")) return messages;
  const isSystem = (message: ChatMessage): boolean => message.role === "system" || message.role === "developer";
  const text = messages.filter(isSystem).map(joinedText).join("\n\n");
  return [{ role: "system", texts: [text] }, ...messages.filter((message) => !isSystem(message))];
}
