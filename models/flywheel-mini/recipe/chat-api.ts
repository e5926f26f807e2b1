// The few calls of the chat API that the evaluation needs: one reply to a conversation, log-probabilities of a text,
// and the time of a reply of fixed length.

import type { Reply } from "./grade.ts";
import type { Conversation, Message } from "./tasks/conversation.ts";

export interface Endpoint {
  baseUrl: string;
  apiKey?: string;
  model?: string;
}

interface Completion {
  choices: {
    message: { content: string | null; tool_calls?: { function: { name: string; arguments: string } }[] | null };
  }[];
  usage: { prompt_tokens: number; completion_tokens: number };
  prompt_logprobs?: (Record<string, { logprob: number; decoded_token: string }> | null)[] | null;
}

async function post(endpoint: Endpoint, body: Record<string, unknown>): Promise<Completion> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (endpoint.apiKey !== undefined) headers.authorization = `Bearer ${endpoint.apiKey}`;
  if (endpoint.model !== undefined) body.model = endpoint.model;
  const response = await fetch(`${endpoint.baseUrl.replace(/\/v1\/?$/, "")}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the server answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as Completion;
}

/** Arguments of earlier calls travel as JSON text. */
function wire(message: Message): Record<string, unknown> {
  if (message.tool_calls === undefined) return { ...message };
  const calls = message.tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: JSON.stringify(call.function.arguments) },
  }));
  return { ...message, tool_calls: calls };
}

/** The reply to all but the last message. */
export async function replyTo(
  endpoint: Endpoint,
  conversation: Conversation,
  sampling: Record<string, unknown>,
): Promise<Reply> {
  const { choices } = await post(endpoint, {
    messages: conversation.messages.slice(0, -1).map(wire),
    ...(conversation.tools === undefined ? {} : { tools: conversation.tools }),
    ...(conversation.documents === undefined ? {} : { documents: conversation.documents }),
    chat_template_kwargs: { enable_thinking: conversation.thinking === true },
    max_tokens: 220,
    ...sampling,
  });
  const message = choices[0]?.message;
  const calls = message?.tool_calls ?? [];
  const reply: Reply = { content: message?.content ?? "" };
  if (calls.length > 0) {
    reply.toolCalls = calls.map((call) => ({
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments) as Record<string, unknown>,
    }));
  }
  return reply;
}

/** Natural log-probability of a plain text and its size in bytes, both without the first token. */
export async function textLogprob(endpoint: Endpoint, text: string): Promise<{ logprob: number; bytes: number }> {
  const { prompt_logprobs: entries } = await post(endpoint, {
    messages: [{ role: "user", content: text }],
    chat_template: "{{ messages[0]['content'] }}",
    add_generation_prompt: false,
    prompt_logprobs: 0,
    max_tokens: 1,
  });
  let logprob = 0;
  let covered = "";
  for (const entry of entries ?? []) {
    for (const token of Object.values(entry ?? {})) {
      logprob += token.logprob;
      covered += token.decoded_token;
    }
  }
  if (covered === "") throw new Error("the server gave no prompt log-probabilities");
  // Without the first token the text is its own suffix; counting the suffix of the original keeps split characters whole.
  const first = text.length - covered.length;
  return { logprob, bytes: Buffer.byteLength(text.slice(Math.max(0, first))) };
}

/** Seconds for a reply of exactly `tokens` tokens, and for a prompt of about `tokens` tokens with a one-token reply. */
export async function speed(
  endpoint: Endpoint,
  tokens: number,
): Promise<{ decodeSeconds: number; prefillSeconds: number; promptTokens: number }> {
  const begin = performance.now();
  await post(endpoint, {
    messages: [{ role: "user", content: `Tell me a story. ${begin}` }],
    max_tokens: tokens,
    ignore_eos: true,
    temperature: 0,
  });
  const middle = performance.now();
  const prompt = Array.from({ length: tokens }, (_, index) => `word${(index * 7 + Math.floor(begin)) % 10}`).join(" ");
  const { usage } = await post(endpoint, {
    messages: [{ role: "user", content: prompt }],
    max_tokens: 1,
    temperature: 0,
  });
  const end = performance.now();
  return {
    decodeSeconds: (middle - begin) / 1000,
    prefillSeconds: (end - middle) / 1000,
    promptTokens: usage.prompt_tokens,
  };
}
