// What has come of one request: a reducer from the chunks of a stream to the state that the page shows. Replies grow in
// place; whoever shows them takes a copy per frame (snapshot).
import type { Body, Message } from "./message.ts";
import { TokenList } from "./token-list.ts";
import { textOf, type WireEntry } from "./tokens.ts";

export interface Branch {
  /** Number of the reply it leaves. */
  of: number;
  /** The token that was replaced. */
  at: number;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text, as the model wrote it. */
  arguments: string;
}

export interface Reply {
  content: string;
  reasoning: string;
  toolCalls: ToolCall[];
  tokens: TokenList;
  tokenIds: number[];
  finish: string | null;
  /** The step that answered; null: no trained policy. */
  policyVersion: number | null;
  branch: Branch | null;
  /** When its first and its last token came, in milliseconds; null: not yet. */
  firstAt: number | null;
  lastAt: number | null;
}

export interface Exchange {
  body: Body;
  /** "lost": the connection broke, and it is asked again when the server is back. */
  state: "waiting" | "streaming" | "lost" | "done" | "stopped" | "failed";
  error: { message: string; param: string | null } | null;
  /** The name that the server gave to what answered. */
  model: string | null;
  promptIds: ArrayLike<number> & Iterable<number>;
  cachedTokens: number | null;
  replies: Reply[];
  /** Milliseconds; null: not yet. */
  startedAt: number;
}

interface ToolCallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

interface Chunk {
  model?: string;
  error?: { message: string; param?: string | null };
  prompt_token_ids?: number[] | null;
  usage?: { prompt_tokens_details?: { cached_tokens: number } | null } | null;
  choices?: {
    index: number;
    delta?: { content?: string | null; reasoning?: string | null; tool_calls?: ToolCallDelta[] };
    /** Of /v1/completions, which has no delta. */
    text?: string;
    logprobs?: { content?: WireEntry[] } | null;
    finish_reason?: string | null;
    token_ids?: number[] | null;
    policy_version?: number;
  }[];
}

export function startExchange(body: Body, now: number): Exchange {
  const n = typeof body.n === "number" ? body.n : 1;
  return {
    body,
    state: "waiting",
    error: null,
    model: null,
    promptIds: [],
    cachedTokens: null,
    replies: Array.from({ length: n }, emptyReply),
    startedAt: now,
  };
}

export function emptyReply(): Reply {
  return {
    content: "",
    reasoning: "",
    toolCalls: [],
    tokens: new TokenList(),
    tokenIds: [],
    finish: null,
    policyVersion: null,
    branch: null,
    firstAt: null,
    lastAt: null,
  };
}

/** Adds one event to the exchange. Event "[DONE]" ends it. */
export function addEvent(exchange: Exchange, data: string, now: number): void {
  if (data === "[DONE]") {
    exchange.state = "done";
    return;
  }
  const chunk = JSON.parse(data) as Chunk;
  if (chunk.error !== undefined) {
    fail(exchange, chunk.error.message, chunk.error.param ?? null);
    return;
  }
  exchange.model = chunk.model ?? exchange.model;
  if (chunk.prompt_token_ids && exchange.promptIds.length === 0) exchange.promptIds = chunk.prompt_token_ids;
  exchange.cachedTokens = chunk.usage?.prompt_tokens_details?.cached_tokens ?? exchange.cachedTokens;
  for (const choice of chunk.choices ?? []) {
    const reply = exchange.replies[choice.index];
    if (reply === undefined) continue;
    const { delta } = choice;
    reply.content += delta?.content ?? choice.text ?? "";
    reply.reasoning += delta?.reasoning ?? "";
    for (const call of delta?.tool_calls ?? []) addToolCall(reply, call);
    const entries = choice.logprobs?.content ?? [];
    for (const entry of entries) reply.tokens.add(entry);
    reply.tokenIds.push(...(choice.token_ids ?? []));
    const isNews = entries.length > 0 || (choice.token_ids ?? []).length > 0 || Boolean(delta?.content);
    if (isNews) {
      exchange.state = "streaming";
      reply.firstAt ??= now;
      reply.lastAt = now;
    }
    reply.finish = choice.finish_reason ?? reply.finish;
    reply.policyVersion = choice.policy_version ?? reply.policyVersion;
  }
}

function addToolCall(reply: Reply, { index, id, function: part }: ToolCallDelta): void {
  reply.toolCalls[index] ??= { id: "", name: "", arguments: "" };
  const call = reply.toolCalls[index]!;
  call.id = id ?? call.id;
  call.name += part?.name ?? "";
  call.arguments += part?.arguments ?? "";
}

export function fail(exchange: Exchange, message: string, param: string | null): void {
  exchange.state = "failed";
  exchange.error = { message, param };
}

/** A copy that a component may compare with the one before. The arrays of tokens stay shared. */
export function snapshot(exchange: Exchange): Exchange {
  return { ...exchange, replies: exchange.replies.map((reply) => ({ ...reply })) };
}

export function isRunning(exchange: Pick<Exchange, "state"> | null): boolean {
  return exchange !== null && ["waiting", "streaming", "lost"].includes(exchange.state);
}

/** Tokens that came together in less time than this tell nothing about the speed. */
const SHORTEST_SECONDS = 0.05;

export interface Speed {
  /** Milliseconds to the first token; null before it. */
  firstTokenMs: number | null;
  /** Of this reply, after its first token; null before the second, and while too little time went by. */
  tokensPerSecond: number | null;
}

export function speedOf({ startedAt }: Pick<Exchange, "startedAt">, { firstAt, lastAt, tokenIds }: Reply): Speed {
  if (firstAt === null || lastAt === null) return { firstTokenMs: null, tokensPerSecond: null };
  const seconds = (lastAt - firstAt) / 1000;
  const count = tokenIds.length - 1;
  return {
    firstTokenMs: firstAt - startedAt,
    tokensPerSecond: seconds >= SHORTEST_SECONDS && count > 0 ? count / seconds : null,
  };
}

/** The beginning of a reply up to a token that is replaced by another: where a continuation starts. */
export function branchOff(reply: Reply, of: number, at: number, replacement: WireEntry, id: number): Reply {
  const tokens = reply.tokens.slice(at);
  tokens.add(replacement);
  const content = textOf(tokens.list());
  return { ...emptyReply(), tokens, tokenIds: [...reply.tokenIds.slice(0, at), id], content, branch: { of, at } };
}

/** Adds an event of the request that goes on with a branch. Its tokens come later, by scoring. */
export function addContinuation(reply: Reply, data: string): void {
  if (data === "[DONE]") return;
  const chunk = JSON.parse(data) as Chunk;
  if (chunk.error !== undefined) throw new Error(chunk.error.message);
  for (const { text, token_ids, finish_reason, policy_version } of chunk.choices ?? []) {
    reply.content += text ?? "";
    reply.tokenIds.push(...(token_ids ?? []));
    reply.finish = finish_reason ?? reply.finish;
    reply.policyVersion = policy_version ?? reply.policyVersion;
  }
}

/** A choice as a chat completion without streaming would have returned it. */
export function asChoice(exchange: Exchange, index: number): Record<string, unknown> {
  const { tokens, tokenIds, finish, policyVersion } = exchange.replies[index]!;
  const entries = Array.from({ length: tokens.length }, (_, at) => tokens.entry(at));
  return {
    index,
    message: saidBy(exchange.replies[index]!),
    logprobs: entries.length === 0 ? null : { content: entries },
    finish_reason: finish,
    token_ids: tokenIds,
    prompt_token_ids: [...exchange.promptIds],
    ...(policyVersion === null ? {} : { policy_version: policyVersion }),
  };
}

function saidBy({ content, reasoning, toolCalls }: Reply): Message {
  const calls = toolCalls.map(asCall);
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

const messages = new WeakMap<readonly ToolCall[], Message>();

/** The reply as the next request repeats it; null if it says nothing. The same object for the same reply. */
export function asMessage({ content, toolCalls }: Reply): Message | null {
  if (content === "" && toolCalls.length === 0) return null;
  const known = messages.get(toolCalls);
  if (known !== undefined && known.content === (content === "" ? null : content)) return known;
  const calls = toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(asCall) };
  const message: Message = { role: "assistant", content: content === "" ? null : content, ...calls };
  messages.set(toolCalls, message);
  return message;
}

function asCall({ id, name, arguments: text }: ToolCall): Record<string, unknown> {
  return { id, type: "function", function: { name, arguments: text } };
}
