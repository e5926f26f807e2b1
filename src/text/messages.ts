// A conversation as chat templates see it. The API reads it from requests and training data (api/generation/messages.ts).
// Everything below the API trusts it.

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
