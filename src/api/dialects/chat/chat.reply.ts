// The reply of a chat, whole or as `data:` events: deltas of every choice in, JSON out. Every key is where clients of this
// dialect expect it (docs/reference/api.md). Output that cannot be sent yet is merged; a whole reply merges all of it.

import { randomUUID } from "node:crypto";
import type { Static } from "typebox";
import type { Finish, PrefillOutput } from "../../../engine/contract.ts";
import type { ServiceError } from "../../../errors/service-error.ts";
import type { CallDelta, ReplyDelta } from "../../../text/reply-parser.ts";
import type { Tokenizer } from "../../../text/tokenizer-contract.ts";
import { failedCompletion, type Reply } from "../../generation/answer.ts";
import type { ChoiceDelta, ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import {
  chunkUsage,
  jsonWith,
  promptLogprobsJson,
  type ReplyFacts,
  type UsageCounts,
  usageOf,
} from "../../generation/reply.ts";
import { DONE } from "../../http/streams.ts";
import { type ChatReplyOptions, wireFinishReason } from "./chat.prepare.ts";
import type { ToolCallDelta } from "./chat.schema.ts";

/** What one choice has produced since it was last taken. */
class Pending {
  content = "";
  reasoning = "";
  readonly toolCalls: Static<typeof ToolCallDelta>[] = [];
  readonly tokenIds: number[] = [];
  /** JSON of the entries, without brackets, written as they arrive. Writing all of it at the end would block other requests. */
  logprobs = "";
  reasoningTokens = 0;
  hasThought = false;
  end: ChoiceEnd | null = null;
  /** There is something to send. */
  dirty = false;

  addPart(part: ReplyDelta): void {
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
      call.id = part.id ?? `chatcmpl-tool-${randomUUID().replaceAll("-", "")}`;
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

interface Choice {
  pending: Pending;
  /** Of what was taken. */
  tokens: number;
  reasoningTokens: number;
  /** A call was shown. */
  hasCalls: boolean;
}

export class ChatReply implements Reply {
  readonly #facts: ReplyFacts;
  readonly #options: ChatReplyOptions;
  readonly #choices: Choice[];
  /** JSON that every chunk begins with, without the closing brace. */
  readonly #head: string;
  #promptLogprobs: PrefillOutput["promptLogprobs"] = null;
  #cachedTokens = 0;
  #begun = false;
  #opened = false;
  #size = 0;

  constructor(facts: ReplyFacts, options: ChatReplyOptions, n: number) {
    this.#facts = facts;
    this.#options = options;
    const unsent = { tokens: 0, reasoningTokens: 0, hasCalls: false };
    this.#choices = Array.from({ length: n }, () => ({ pending: new Pending(), ...unsent }));
    const { id, created, model } = facts;
    this.#head = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1);
  }

  get size(): number {
    return this.#size;
  }

  /** Of what was taken. */
  get counts(): UsageCounts {
    const sum = (key: "tokens" | "reasoningTokens") => this.#choices.reduce((all, choice) => all + choice[key], 0);
    return { completion: sum("tokens"), cached: this.#cachedTokens, reasoning: sum("reasoningTokens") };
  }

  accept(_run: number, output: RunOutput): void {
    if (output.type === "prefill") this.#promptLogprobs = output.promptLogprobs;
    if (output.type === "delta") this.#add(output, this.#choices[output.index]!);
    else this.#cachedTokens = output.cachedTokens ?? 0;
  }

  #add(delta: ChoiceDelta, choice: Choice): void {
    this.#begun = true;
    const { pending } = choice;
    const shown = delta.parts.filter((part) => this.#shows(part));
    const before = pending.logprobs.length;
    for (const part of shown) pending.addPart(part);
    pending.tokenIds.push(...delta.tokenIds);
    for (const entry of this.#showsLogprobs ? delta.logprobs : []) {
      pending.logprobs += `${pending.logprobs === "" ? "" : ","}${JSON.stringify(entry)}`;
    }
    pending.reasoningTokens += delta.reasoningTokens;
    pending.hasThought ||= delta.hasThought;
    pending.end = delta.end ?? pending.end;
    pending.dirty ||= delta.end !== null || shown.length > 0 || this.#tokensAreNews(delta);
    choice.hasCalls ||= shown.some((part) => part.kind === "tool_call");
    this.#size += sizeOf(delta) + pending.logprobs.length - before;
  }

  #shows(part: ReplyDelta): boolean {
    if (part.kind === "reasoning") return this.#options.includeReasoning;
    return part.kind === "content" || this.#options.parallelToolCalls || part.index === 0;
  }

  get #showsLogprobs(): boolean {
    return this.#options.logprobs && !this.#options.hideDetails;
  }

  /** Tokens without text make a chunk too, unless a parser consumed them and the client did not ask for ids. */
  #tokensAreNews(delta: ChoiceDelta): boolean {
    const { hideDetails, parses, returnTokenIds, logprobs } = this.#options;
    return delta.tokenIds.length > 0 && !hideDetails && (!parses || returnTokenIds || logprobs);
  }

  #taken(choice: Choice): Pending {
    const { pending } = choice;
    choice.pending = new Pending();
    choice.tokens += pending.tokenIds.length;
    choice.reasoningTokens += pending.reasoningTokens;
    return pending;
  }

  /** Every key is always present; what was not asked for is null. */
  async toJson(tokenizer: Tokenizer): Promise<string> {
    const { promptTokenIds, returnTokenIds } = this.#options;
    const found = this.#promptLogprobs;
    const promptLogprobs = found === null ? null : await promptLogprobsJson(tokenizer, promptTokenIds, found);
    const ends = this.#choices.map(({ pending }) => pending.end);
    const kvTransferParams = ends.find((end) => end?.kvTransferParams)?.kvTransferParams ?? null;
    const parts = { choices: this.choicesJson(), promptLogprobs, kvTransferParams };
    return chatReplyJson(this.#facts, this.counts, parts, returnTokenIds ? promptTokenIds : null);
  }

  /** JSON of the whole choices, separated by commas; `first` is the index of the first of them. They must have ended. */
  choicesJson(first = 0): string {
    let choices = "";
    this.#choices.forEach((choice, index) => {
      choices += `${index === 0 ? "" : ","}${this.#wholeJson(choice, first + index)}`;
    });
    return choices;
  }

  #wholeJson(choice: Choice, index: number): string {
    const { echo, hideDetails, namedTool, policyVersion, promptTokenIds, reasoningAlias, returnTokenIds, role } =
      this.#options;
    const { content, end, hasThought, logprobs, reasoning, tokenIds, toolCalls } = this.#taken(choice);
    const text = echo + content;
    // Empty content is null after a thought or beside tool calls, and "" in a plain reply or beside a named call.
    const silent = text === "" && !namedTool && (choice.hasCalls || hasThought);
    const thought = reasoning === "" ? null : reasoning;
    const wire = {
      index,
      message: {
        role,
        content: silent ? null : text,
        refusal: null,
        annotations: null,
        audio: null,
        function_call: null,
        tool_calls: toolCalls.map(({ index: _, ...call }) => call),
        reasoning: thought,
        ...(reasoningAlias ? { reasoning_content: thought } : {}),
      },
      logprobs: null,
      finish_reason: wireFinishReason(end!.reason, choice.hasCalls, namedTool),
      stop_reason: end!.stopReason,
      token_ids: returnTokenIds && !hideDetails ? tokenIds : null,
      // A choice of a trained policy carries what a training job needs, prompt included.
      ...(policyVersion === null ? {} : { policy_version: policyVersion, prompt_token_ids: promptTokenIds }),
    };
    return jsonWith(wire, { logprobs: this.#showsLogprobs ? `{"content":[${logprobs}]}` : null });
  }

  take(): string {
    // Not before there is output: if the first token fails, the error is the first event.
    let events = this.#begun && !this.#opened ? this.#openingChunks() : "";
    this.#opened = this.#begun;
    this.#size = 0;
    for (const [index, choice] of this.#choices.entries()) {
      if (choice.pending.dirty) events += this.#chunk(choice, index);
    }
    return events;
  }

  /** The usage of the whole request, if asked for. */
  closing(): string {
    if (!this.#facts.includeUsage) return DONE;
    const usage = chunkUsage(usageOf(this.#facts, this.counts));
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
    const each = (event: (index: number) => string) => this.#choices.map((_, index) => event(index)).join("");
    const roles = each((index) => this.#event({ index, delta: { role, content: "" }, ...nothingElse }, prompt));
    return echo === ""
      ? roles
      : roles + each((index) => this.#event({ index, delta: { content: echo }, ...nothingElse }));
  }

  #chunk(choice: Choice, index: number): string {
    const { hideDetails, namedTool, policyVersion, returnTokenIds } = this.#options;
    const { includeUsage, systemFingerprint } = this.#facts;
    const pending = this.#taken(choice);
    const { end, logprobs, tokenIds } = pending;
    const wire = {
      index,
      delta: this.#delta(pending),
      logprobs: null,
      finish_reason: end === null ? null : wireFinishReason(end.reason, choice.hasCalls, namedTool),
      token_ids: returnTokenIds && !hideDetails ? tokenIds : null,
      ...(end === null ? {} : { stop_reason: end.stopReason }),
      ...(end === null || policyVersion === null ? {} : { policy_version: policyVersion }),
    };
    const more = end === null || includeUsage ? {} : { system_fingerprint: systemFingerprint };
    return this.#event(wire, more, this.#showsLogprobs ? `{"content":[${logprobs}]}` : null);
  }

  #delta({ content, reasoning, toolCalls }: Pending): object {
    const thought = this.#options.reasoningAlias ? { reasoning, reasoning_content: reasoning } : { reasoning };
    const delta = {
      ...(reasoning === "" ? {} : thought),
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    };
    return content !== "" || Object.keys(delta).length === 0 ? { ...delta, content } : delta;
  }

  /** `logprobs`: those of the choice, as JSON. */
  #event(choice: { index: number; delta: object }, more: object = {}, logprobs: string | null = null): string {
    const chunk: Record<string, unknown> = { choices: null, ...more };
    if (this.#facts.includeUsage && this.#facts.continuousUsage) {
      const { tokens, reasoningTokens } = this.#choices[choice.index]!;
      const counts = { completion: tokens, cached: this.#cachedTokens, reasoning: reasoningTokens };
      chunk.usage = chunkUsage(usageOf(this.#facts, counts));
    }
    return this.#data(chunk, jsonWith({ ...choice }, { logprobs }));
  }

  /** `choices`: as JSON, without brackets. */
  #data(members: Record<string, unknown>, choices = ""): string {
    return `data: ${this.#head},${jsonWith(members, { choices: `[${choices}]` }).slice(1)}\n\n`;
  }
}

/** `choices` and `promptLogprobs` are JSON text already. */
export function chatReplyJson(
  facts: ReplyFacts,
  counts: UsageCounts,
  parts: { choices: string; promptLogprobs: string | null; kvTransferParams: Finish["kvTransferParams"] | null },
  promptTokenIds: readonly number[] | null,
): string {
  const reply = {
    id: facts.id,
    object: "chat.completion",
    created: facts.created,
    model: facts.model,
    choices: null,
    service_tier: null,
    system_fingerprint: facts.systemFingerprint,
    usage: usageOf(facts, counts),
    prompt_logprobs: null,
    prompt_token_ids: promptTokenIds,
    kv_transfer_params: parts.kvTransferParams,
  };
  return jsonWith(reply, { choices: `[${parts.choices}]`, prompt_logprobs: parts.promptLogprobs });
}
