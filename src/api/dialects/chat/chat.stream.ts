// The streaming chat reply: deltas in, `data:` events out. Every key is where clients of this dialect expect it
// (docs/reference/wire.md). Output that cannot be sent yet is merged (PendingChunk).

import { randomUUID } from "node:crypto";
import type { Static } from "typebox";
import type { ServiceError } from "../../../errors/service-error.ts";
import type { CallDelta, ReplyDelta } from "../../../text/reply-parser.ts";
import { type ChunkSource, failedCompletion } from "../../generation/answer.ts";
import type { ChoiceDelta, ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import { chunkUsage, jsonWith, type ReplyFacts, usageOf } from "../../generation/reply.ts";
import { DONE } from "../../http/streams.ts";
import { type ChatReplyOptions, wireFinishReason } from "./chat.prepare.ts";
import type { ToolCallDelta } from "./chat.schema.ts";

// What one choice of a streamed chat has produced since its last chunk. Deltas merge, so a slow reader gets few large chunks
// instead of many small ones.

class PendingChunk {
  content = "";
  reasoning = "";
  readonly toolCalls: Static<typeof ToolCallDelta>[] = [];
  readonly tokenIds: number[] = [];
  /** JSON of the entries, without brackets. */
  logprobs = "";
  reasoningTokens = 0;
  end: ChoiceEnd | null = null;
  /** There is something to send. */
  dirty = false;

  /** `parts`: the parts of the delta that may be shown. */
  add(delta: ChoiceDelta, parts: readonly ReplyDelta[]): void {
    for (const part of parts) this.#addPart(part);
    this.tokenIds.push(...delta.tokenIds);
    for (const entry of delta.logprobs) this.logprobs += `${this.logprobs === "" ? "" : ","}${JSON.stringify(entry)}`;
    this.reasoningTokens += delta.reasoningTokens;
    this.end = delta.end ?? this.end;
    this.dirty ||= delta.end !== null || parts.length > 0;
  }

  #addPart(part: ReplyDelta): void {
    if (part.kind === "tool_call") this.#addToolCall(part);
    else this[part.kind] += part.text;
  }

  /** Joins the fragments of a call. Its id and type go with the name, which comes first. */
  #addToolCall(part: CallDelta): void {
    let call = this.toolCalls.find((known) => known.index === part.index);
    if (call === undefined) {
      call = { index: part.index };
      this.toolCalls.push(call);
    }
    const isCustom = part.input !== undefined;
    if (part.name !== undefined) {
      call.id = part.id ?? toolCallId();
      call.type = isCustom ? "custom" : "function";
    }
    const name = part.name === undefined ? {} : { name: part.name };
    if (isCustom) call.custom = { ...call.custom, ...name, input: (call.custom?.input ?? "") + part.input };
    else {
      const text = (call.function?.arguments ?? "") + (part.argumentsText ?? "");
      call.function = { ...call.function, ...name, arguments: text };
    }
  }
}

/** Roughly how many bytes a delta adds to the output that waits, besides its log-probabilities. */
function sizeOf(delta: ChoiceDelta): number {
  let size = delta.tokenIds.length * 8;
  for (const part of delta.parts) {
    size += part.kind === "tool_call" ? (part.input ?? part.argumentsText ?? "").length + 64 : part.text.length;
  }
  return size;
}

/** What was sent of one choice. */
interface Sent {
  tokens: number;
  reasoningTokens: number;
  toolCalls: boolean;
}

export class ChatChunks implements ChunkSource {
  readonly #facts: ReplyFacts;
  readonly #options: ChatReplyOptions;
  readonly #pending: PendingChunk[];
  readonly #sent: Sent[];
  /** JSON that every chunk begins with, without the closing brace. */
  readonly #head: string;
  #opening = "";
  #opened = false;
  #size = 0;
  #cachedTokens = 0;

  constructor(facts: ReplyFacts, options: ChatReplyOptions, n: number) {
    this.#facts = facts;
    this.#options = options;
    this.#pending = Array.from({ length: n }, () => new PendingChunk());
    this.#sent = Array.from({ length: n }, () => ({ tokens: 0, reasoningTokens: 0, toolCalls: false }));
    const { id, created, model } = facts;
    this.#head = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1);
  }

  get size(): number {
    return this.#size;
  }

  accept(_run: number, output: RunOutput): void {
    if (output.type !== "delta") {
      this.#cachedTokens = output.cachedTokens ?? 0;
      return;
    }
    // Not earlier: if the first token fails, the error is the first event.
    if (!this.#opened) {
      this.#opened = true;
      this.#opening = this.#openingChunks();
    }
    const pending = this.#pending[output.index]!;
    const shown = output.parts.filter((part) => this.#shows(part));
    const before = pending.logprobs.length;
    pending.add(output, shown);
    pending.dirty ||= this.#tokensAreNews(output);
    this.#sent[output.index]!.toolCalls ||= shown.some((part) => part.kind === "tool_call");
    this.#size += sizeOf(output) + pending.logprobs.length - before;
  }

  take(): string {
    let events = this.#opening;
    this.#opening = "";
    this.#size = 0;
    this.#pending.forEach((pending, index) => {
      if (pending.dirty) {
        events += this.#chunk(pending, index);
        this.#pending[index] = new PendingChunk();
      }
    });
    return events;
  }

  /** The usage of the whole request, if asked for. */
  closing(): string {
    if (!this.#facts.includeUsage) return DONE;
    const sum = (key: "tokens" | "reasoningTokens") => this.#sent.reduce((total, sent) => total + sent[key], 0);
    const counts = { completion: sum("tokens"), cached: this.#cachedTokens, reasoning: sum("reasoningTokens") };
    const usage = chunkUsage(usageOf(this.#facts, counts));
    return this.#data({ choices: [], system_fingerprint: this.#facts.systemFingerprint, usage }) + DONE;
  }

  failure(error: ServiceError): string {
    return failedCompletion(error);
  }

  /** One role chunk per choice, then the echo. */
  #openingChunks(): string {
    const { role, echo, promptTokenIds, returnTokenIds } = this.#options;
    const nothingElse = { logprobs: null, finish_reason: null };
    const prompt = { prompt_token_ids: returnTokenIds ? promptTokenIds : null };
    let events = "";
    for (let index = 0; index < this.#pending.length; index++) {
      events += this.#event([{ index, delta: { role, content: "" }, ...nothingElse }], index, prompt);
    }
    for (let index = 0; echo !== "" && index < this.#pending.length; index++) {
      events += this.#event([{ index, delta: { content: echo }, ...nothingElse }], index);
    }
    return events;
  }

  #shows(part: ReplyDelta): boolean {
    if (part.kind === "reasoning") return this.#options.includeReasoning;
    return part.kind === "content" || this.#options.parallelToolCalls || part.index === 0;
  }

  /** Tokens without text make a chunk too, unless a parser consumed them and the client did not ask for ids. */
  #tokensAreNews(delta: ChoiceDelta): boolean {
    const { hideDetails, parses, returnTokenIds, logprobs } = this.#options;
    return delta.tokenIds.length > 0 && !hideDetails && (!parses || returnTokenIds || logprobs);
  }

  #chunk(pending: PendingChunk, index: number): string {
    const { hideDetails, namedTool, policyVersion, returnTokenIds, logprobs } = this.#options;
    const facts = this.#facts;
    const sent = this.#sent[index]!;
    sent.tokens += pending.tokenIds.length;
    sent.reasoningTokens += pending.reasoningTokens;
    const choice: Record<string, unknown> = {
      index,
      delta: this.#delta(pending),
      logprobs: null,
      finish_reason: null,
      token_ids: returnTokenIds && !hideDetails ? pending.tokenIds : null,
    };
    const written = logprobs && !hideDetails ? `{"content":[${pending.logprobs}]}` : null;
    if (pending.end === null) return this.#event([choice], index, {}, written);
    choice.finish_reason = wireFinishReason(pending.end.reason, sent.toolCalls, namedTool);
    choice.stop_reason = pending.end.stopReason;
    if (policyVersion !== null) choice.policy_version = policyVersion;
    const more = facts.includeUsage ? {} : { system_fingerprint: facts.systemFingerprint };
    return this.#event([choice], index, more, written);
  }

  #delta({ content, reasoning, toolCalls }: PendingChunk): Record<string, unknown> {
    const thought = this.#options.reasoningAlias ? { reasoning, reasoning_content: reasoning } : { reasoning };
    const delta = {
      ...(reasoning === "" ? {} : thought),
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    };
    return content !== "" || Object.keys(delta).length === 0 ? { ...delta, content } : delta;
  }

  /** `logprobs`: those of the only choice, as JSON. */
  #event(
    choices: Record<string, unknown>[],
    index: number,
    more: Record<string, unknown> = {},
    logprobs: string | null = null,
  ): string {
    const facts = this.#facts;
    const chunk: Record<string, unknown> = { choices: null, ...more };
    if (facts.includeUsage && facts.continuousUsage) {
      const { tokens, reasoningTokens } = this.#sent[index]!;
      const counts = { completion: tokens, cached: this.#cachedTokens, reasoning: reasoningTokens };
      chunk.usage = chunkUsage(usageOf(facts, counts));
    }
    return this.#data(chunk, choices.map((choice) => jsonWith(choice, { logprobs })).join(","));
  }

  /** `choices`: as JSON, without brackets. */
  #data(members: Record<string, unknown>, choices = ""): string {
    return `data: ${this.#head},${jsonWith(members, { choices: `[${choices}]` }).slice(1)}\n\n`;
  }
}

// Makes the id of a parsed tool call. The client sends it back with the result.
export function toolCallId(): string {
  return `chatcmpl-tool-${randomUUID().replaceAll("-", "")}`;
}
