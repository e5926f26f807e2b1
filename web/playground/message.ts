// Messages and bodies of requests, as they are on the wire.

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
  reasoning?: string;
  tool_calls?: Record<string, unknown>[];
  tool_call_id?: string;
}

export type Body = Record<string, unknown>;
