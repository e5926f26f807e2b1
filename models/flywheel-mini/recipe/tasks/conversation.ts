// The types of the recipe: a conversation as training sees it, and the check for its last reply. Field names are those of the
// chat API, so that a held-out conversation can be sent to a server unchanged.

export interface ToolCall {
  type: "function";
  id: string;
  function: { name: string; arguments: Record<string, unknown> };
}

export interface Message {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content: string | null;
  /** The text inside the think block. Absent or empty = an empty block. */
  reasoning?: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}

export interface Tool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters?: { type: "object"; properties: Record<string, Record<string, unknown>>; required?: string[] };
  };
}

/** What the last reply must satisfy. Answers are compared without case, outer spaces and a final full stop. */
export type Check =
  | { kind: "word"; answers: string[] }
  | { kind: "choice"; options: string[]; answer: string }
  | { kind: "json"; keys: string[]; values?: Record<string, unknown> }
  | { kind: "number"; value: number }
  | { kind: "tool"; name: string; arguments: Record<string, unknown> }
  | { kind: "contains"; any: string[] }
  | { kind: "exact"; text: string }
  | { kind: "list"; count: number };

export interface Conversation {
  /** The family that made it, for counts and the score table. */
  family: string;
  messages: Message[];
  tools?: Tool[];
  documents?: { title: string; text: string }[];
  /** True if the last reply has thinking on. */
  thinking?: boolean;
  check?: Check;
}

export const user = (content: string): Message => ({ role: "user", content });
export const system = (content: string): Message => ({ role: "system", content });

export function assistant(content: string, reasoning?: string): Message {
  return reasoning === undefined ? { role: "assistant", content } : { role: "assistant", content, reasoning };
}

/** A single question and its answer. */
export function exchange(
  family: string,
  prompt: string,
  reply: string,
  check?: Check,
  reasoning?: string,
): Conversation {
  const conversation: Conversation = { family, messages: [user(prompt), assistant(reply, reasoning)] };
  if (reasoning !== undefined) conversation.thinking = true;
  if (check !== undefined) conversation.check = check;
  return conversation;
}

/** The part of a conversation that the splits must not share. */
export function promptKey(conversation: Conversation): string {
  const asked = conversation.messages.filter((message) => message.role === "user").map((message) => message.content);
  return `prompt:${asked
    .join("\n")
    .toLowerCase()
    .replace(/[^a-z0-9+*\n -]/g, "")}`;
}
