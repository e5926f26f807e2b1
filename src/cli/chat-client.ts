// A minimal streaming client for chat completions: one POST, server-sent events in, pieces of text out.
import { serverSentEvents } from "../client/server-sent-events.ts";
import { OperatorError } from "../errors/faults.ts";

export interface ChatTarget {
  /** Ends in /v1. */
  url: string;
  apiKey: string;
  model?: string | undefined;
  maxTokens?: number | undefined;
  temperature?: number | undefined;
}

export interface ChatMessage {
  role: string;
  content: string;
}

export interface ReplyPiece {
  kind: "content" | "reasoning";
  text: string;
}

interface Chunk {
  error?: { message: string };
  choices?: { delta: { content?: string | null; reasoning?: string | null; reasoning_content?: string | null } }[];
}

export async function* streamReply(
  target: ChatTarget,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
): AsyncGenerator<ReplyPiece> {
  const body = {
    messages,
    stream: true,
    model: target.model,
    max_completion_tokens: target.maxTokens,
    temperature: target.temperature,
  };
  const response = await fetch(`${target.url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${target.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok || response.body === null) {
    const text = await response.text();
    throw new OperatorError(`the server answered ${response.status}: ${errorMessage(text)}`);
  }
  for await (const { data } of serverSentEvents(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error !== undefined) throw new OperatorError(chunk.error.message);
    const delta = chunk.choices?.[0]?.delta;
    const reasoning = delta?.reasoning ?? delta?.reasoning_content;
    if (reasoning) yield { kind: "reasoning", text: reasoning };
    if (delta?.content) yield { kind: "content", text: delta.content };
  }
}

function errorMessage(text: string): string {
  try {
    return (JSON.parse(text) as { error?: { message?: string } }).error?.message ?? text;
  } catch {
    return text.slice(0, 500); // not JSON, perhaps a proxy's error page
  }
}
