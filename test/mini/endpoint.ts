// A server that is asked over HTTP: a reply to a case, the log-probability of a text, and the time of a reply of fixed length.

import { randomUUID } from "node:crypto";
import type { Message, Question } from "./cases.ts";
import type { Reply } from "./grade.ts";

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
  prompt_token_ids?: number[] | null;
  prompt_logprobs?: (Record<string, { logprob: number; decoded_token: string }> | null)[] | null;
}

async function post<R = Completion>(
  endpoint: Endpoint,
  body: Record<string, unknown>,
  path = "/v1/chat/completions",
): Promise<R> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (endpoint.apiKey !== undefined) headers.authorization = `Bearer ${endpoint.apiKey}`;
  if (endpoint.model !== undefined) body.model = endpoint.model;
  const response = await fetch(`${endpoint.baseUrl.replace(/\/v1\/?$/, "")}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the server answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as R;
}

/** A message as requests carry it, with the arguments of calls as JSON text. */
function wire(message: Message): Record<string, unknown> {
  if (message.tool_calls === undefined) return { ...message };
  const calls = message.tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: JSON.stringify(call.function.arguments) },
  }));
  return { ...message, tool_calls: calls };
}

export async function replyTo(
  endpoint: Endpoint,
  question: Question,
  sampling: Record<string, unknown>,
): Promise<Reply> {
  const { choices } = await post(endpoint, {
    messages: question.messages.map(wire),
    ...(question.tools === undefined ? {} : { tools: question.tools }),
    ...(question.documents === undefined ? {} : { documents: question.documents }),
    chat_template_kwargs: { enable_thinking: question.thinking === true },
    max_tokens: 220,
    ...sampling,
  });
  const message = choices[0]?.message;
  const calls = message?.tool_calls ?? [];
  const reply: Reply = { content: message?.content ?? "" };
  if (calls.length > 0) {
    reply.toolCalls = calls.map(({ function: { name, arguments: text } }) => ({
      name,
      arguments: readArguments(text),
    }));
  }
  return reply;
}

/** A small model may write arguments that are not JSON. That is a wrong reply, not an error of the evaluation. */
function readArguments(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Runs at most `limit` calls at a time and returns their results in order. */
export async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++)
      results[index] = await work(items[index] as T, index);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

/**
 * Natural log-probability of a plain text and its size in bytes, both without the text's first token. The model's own
 * beginning-of-text token, if any, comes first, because some models predict nothing sensible without it.
 */
export async function textLogprob(endpoint: Endpoint, text: string): Promise<{ logprob: number; bytes: number }> {
  const { prompt_logprobs: entries, prompt_token_ids: ids } = await post(endpoint, {
    messages: [{ role: "user", content: text }],
    chat_template: "{{ bos_token or '' }}{{ messages[0]['content'] }}",
    add_generation_prompt: false,
    prompt_logprobs: 0,
    return_token_ids: true,
    max_tokens: 1,
  });
  const plain = { prompt: text, add_special_tokens: false };
  const { tokens } = await post<{ tokens: number[] }>(endpoint, plain, "/tokenize");
  const before = (ids?.length ?? 0) - tokens.length;
  if (!entries || !ids || before < 0 || before > 1 || tokens.some((token, at) => token !== ids[before + at]))
    throw new Error("the server's prompt is not the text, or it gave no log-probabilities");
  let logprob = 0;
  for (let at = before + 1; at < ids.length; at++) {
    const token = entries[at]?.[String(ids[at])];
    if (token === undefined) throw new Error(`no log-probability for token ${at} of the prompt`);
    logprob += token.logprob;
  }
  const first = await post<{ prompt: string }>(endpoint, { tokens: tokens.slice(0, 1) }, "/detokenize");
  return { logprob, bytes: Buffer.byteLength(text) - Buffer.byteLength(first.prompt) };
}

/** Requests a reply of exactly `tokens` tokens to a prompt that is not in the prefix cache. */
export async function timedReply(
  endpoint: Endpoint,
  prompt: string,
  tokens: number,
): Promise<{ seconds: number; promptTokens: number }> {
  const begin = performance.now();
  const { usage } = await post(endpoint, {
    messages: [{ role: "user", content: prompt }],
    max_tokens: tokens,
    ignore_eos: true,
    temperature: 0,
    cache_salt: randomUUID(),
  });
  const seconds = (performance.now() - begin) / 1000;
  if (usage.completion_tokens !== tokens)
    throw new Error(`${tokens} tokens asked for, ${usage.completion_tokens} came`);
  return { seconds, promptTokens: usage.prompt_tokens };
}
