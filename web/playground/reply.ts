// What has come of one request: a reducer from the chunks of a stream to the state that the page shows. Replies grow in
// place; whoever shows them takes a copy per frame (snapshot).
import type { Body } from "./request.ts";
import { type Token, TokenReader, textOf, type WireEntry } from "./tokens.ts";

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
  tokens: Token[];
  /** As the wire had them, for training and for the raw view. */
  entries: WireEntry[];
  tokenIds: number[];
  finish: string | null;
  /** The step that answered; null: no trained policy. */
  policyVersion: number | null;
  branch: Branch | null;
}

export interface Exchange {
  body: Body;
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  error: { message: string; param: string | null } | null;
  /** The name that the server gave to what answered. */
  model: string | null;
  promptIds: number[];
  cachedTokens: number | null;
  replies: Reply[];
  /** Milliseconds; null: not yet. */
  startedAt: number;
  firstAt: number | null;
  lastAt: number | null;
  /** The data of every event. */
  events: string[];
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
    firstAt: null,
    lastAt: null,
    events: [],
  };
}

export function emptyReply(): Reply {
  return {
    content: "",
    reasoning: "",
    toolCalls: [],
    tokens: [],
    entries: [],
    tokenIds: [],
    finish: null,
    policyVersion: null,
    branch: null,
  };
}

/** A reader of tokens per reply, because characters may be split between tokens. */
const readers = new WeakMap<Reply["tokens"], TokenReader>();

/** Adds one event to the exchange. Event "[DONE]" ends it. */
export function addEvent(exchange: Exchange, data: string, now: number): void {
  exchange.events.push(data);
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
    addTokens(reply, entries, choice.token_ids ?? []);
    const isNews = entries.length > 0 || (choice.token_ids ?? []).length > 0 || Boolean(delta?.content);
    if (isNews) {
      exchange.state = "streaming";
      exchange.firstAt ??= now;
      exchange.lastAt = now;
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

export function addTokens(reply: Reply, entries: readonly WireEntry[], ids: readonly number[]): void {
  const reader = readers.get(reply.tokens) ?? new TokenReader();
  readers.set(reply.tokens, reader);
  for (const entry of entries) reply.tokens.push(reader.read(entry));
  reply.entries.push(...entries);
  reply.tokenIds.push(...ids);
}

export function fail(exchange: Exchange, message: string, param: string | null): void {
  exchange.state = "failed";
  exchange.error = { message, param };
}

/** A copy that a component may compare with the one before. The arrays of tokens stay shared. */
export function snapshot(exchange: Exchange): Exchange {
  return { ...exchange, replies: exchange.replies.map((reply) => ({ ...reply })) };
}

export function isRunning(exchange: Exchange | null): boolean {
  return exchange?.state === "waiting" || exchange?.state === "streaming";
}

/** Tokens that came together in less time than this tell nothing about the speed. */
const SHORTEST_SECONDS = 0.05;

export interface Speed {
  /** Milliseconds to the first token; null before it. */
  firstTokenMs: number | null;
  /** Of all replies together, after the first token; null before the second, and while too little time went by. */
  tokensPerSecond: number | null;
}

export function speedOf(exchange: Exchange): Speed {
  const { startedAt, firstAt, lastAt } = exchange;
  if (firstAt === null || lastAt === null) return { firstTokenMs: null, tokensPerSecond: null };
  const count = exchange.replies.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0) - exchange.replies.length;
  const seconds = (lastAt - firstAt) / 1000;
  return {
    firstTokenMs: firstAt - startedAt,
    tokensPerSecond: seconds >= SHORTEST_SECONDS && count > 0 ? count / seconds : null,
  };
}

/** The beginning of a reply up to a token that is replaced by another: where a continuation starts. */
export function branchOff(reply: Reply, of: number, at: number, replacement: WireEntry, id: number): Reply {
  const kept = [...reply.entries.slice(0, at), replacement];
  const branch: Reply = { ...emptyReply(), branch: { of, at } };
  addTokens(branch, kept, [...reply.tokenIds.slice(0, at), id]);
  branch.content = textOf(branch.tokens);
  return branch;
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
  const { content, reasoning, toolCalls, entries, tokenIds, finish, policyVersion } = exchange.replies[index]!;
  const calls = toolCalls.map(({ id, ...call }) => ({ id, type: "function", function: call }));
  return {
    index,
    message: {
      role: "assistant",
      content,
      ...(reasoning === "" ? {} : { reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
    logprobs: entries.length === 0 ? null : { content: entries },
    finish_reason: finish,
    token_ids: tokenIds,
    prompt_token_ids: exchange.promptIds,
    ...(policyVersion === null ? {} : { policy_version: policyVersion }),
  };
}
