// The reply of Anthropic's Messages API, whole or as events: message_start and ping, then each block with its deltas, then
// message_delta and message_stop. Text that cannot be sent yet is merged.
import type { ServiceError } from "../../../errors/service-error.ts";
import { parseExactJson, writeExactJson } from "../../../json/exact-json.ts";
import { isJsonObject } from "../../../json/json.ts";
import type { ReplyDelta } from "../../../text/reply-parser.ts";
import type { Reply } from "../../generation/answer.ts";
import type { ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import { messagesError } from "../../http/errors.ts";
import { namedEvent } from "../../http/streams.ts";

export interface MessageFacts {
  /** 32 hexadecimal digits of the message's id. */
  key: string;
  model: string;
  promptTokens: number;
  /** false: only the first call is shown. */
  parallelToolCalls: boolean;
  policyVersion: number | null;
}

/** `text`: of a tool_use, the JSON of its input. */
interface Block {
  type: "thinking" | "text" | "tool_use";
  text: string;
  id: string;
  name: string;
  call: number;
}

export class MessageReply implements Reply {
  readonly #facts: MessageFacts;
  readonly #streams: boolean;
  readonly #blocks: Block[] = [];
  #open = false;
  /** Text of the open block that was not sent yet. */
  #unsent = "";
  #events = "";
  #started = false;
  #cached = 0;
  #output = 0;
  #end: ChoiceEnd | null = null;

  constructor(facts: MessageFacts, streams: boolean) {
    this.#facts = facts;
    this.#streams = streams;
  }

  get size(): number {
    return this.#events.length + this.#unsent.length;
  }

  accept(_run: number, output: RunOutput): void {
    if (output.type !== "delta") {
      this.#cached = output.cachedTokens ?? 0;
      return;
    }
    if (!this.#started) this.#start();
    for (const part of output.parts) this.#add(part);
    this.#output += output.tokenIds.length;
    this.#end = output.end ?? this.#end;
  }

  take(): string {
    this.#flush();
    const events = this.#events;
    this.#events = "";
    return events;
  }

  closing(): string {
    if (this.#end === null) return ""; // the client is gone
    this.#close();
    this.#event("message_delta", { delta: this.#stop(), usage: this.#usage() });
    this.#event("message_stop", {});
    return this.take();
  }

  failure(error: ServiceError): string {
    return this.take() + namedEvent("error", JSON.stringify(messagesError(error, null)));
  }

  /** The whole message. The output must have ended. */
  toJson(): string {
    return writeExactJson(this.#message(this.#blocks.map(wholeBlock), this.#stop()));
  }

  #add(part: ReplyDelta): void {
    if (part.kind !== "tool_call") {
      this.#opened({ type: part.kind === "reasoning" ? "thinking" : "text", call: -1, name: "" }, undefined);
      this.#append(part.text);
      return;
    }
    if (part.index > 0 && !this.#facts.parallelToolCalls) return;
    if (part.name !== undefined) this.#opened({ type: "tool_use", call: part.index, name: part.name }, part.id);
    this.#append(part.argumentsText ?? "");
  }

  #append(text: string): void {
    this.#blocks.at(-1)!.text += text;
    this.#unsent += text;
  }

  /** `own`: the id that the model gave the call. */
  #opened(wanted: Pick<Block, "type" | "call" | "name">, own: string | undefined): void {
    const last = this.#blocks.at(-1);
    if (this.#open && last?.type === wanted.type && last.call === wanted.call) return;
    this.#close();
    const block = { ...wanted, id: own ?? `toolu_${this.#facts.key}_${this.#blocks.length}`, text: "" };
    this.#blocks.push(block);
    this.#open = true;
    this.#blockEvent("content_block_start", { content_block: emptyBlock(block) });
  }

  #flush(): void {
    if (this.#unsent === "") return;
    const text = this.#unsent;
    this.#unsent = "";
    this.#blockEvent("content_block_delta", { delta: deltaOf(this.#blocks.at(-1)!.type, text) });
  }

  #close(): void {
    if (!this.#open) return;
    this.#flush();
    this.#open = false;
    this.#blockEvent("content_block_stop", {});
  }

  #start(): void {
    this.#started = true;
    this.#event("message_start", { message: this.#message([], { stop_reason: null, stop_sequence: null }) });
    this.#event("ping", {});
  }

  #message(content: readonly unknown[], stop: object): object {
    const { key, model, policyVersion } = this.#facts;
    return {
      id: `msg_${key}`,
      type: "message",
      role: "assistant",
      model,
      content,
      ...stop,
      usage: this.#usage(),
      ...(policyVersion === null ? {} : { policy_version: policyVersion }),
    };
  }

  #stop(): { stop_reason: string; stop_sequence: string | null } {
    const { reason, stopReason } = this.#end!;
    if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
    if (this.#blocks.some(({ type }) => type === "tool_use")) return { stop_reason: "tool_use", stop_sequence: null };
    return reason === "stop" && typeof stopReason === "string"
      ? { stop_reason: "stop_sequence", stop_sequence: stopReason }
      : { stop_reason: "end_turn", stop_sequence: null };
  }

  #usage() {
    return {
      input_tokens: this.#facts.promptTokens - this.#cached,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: this.#cached,
      output_tokens: this.#output,
    };
  }

  #blockEvent(type: string, fields: object): void {
    this.#event(type, { index: this.#blocks.length - 1, ...fields });
  }

  #event(type: string, fields: object): void {
    if (this.#streams) this.#events += namedEvent(type, JSON.stringify({ type, ...fields }));
  }
}

function emptyBlock({ type, id, name }: Block): object {
  if (type === "tool_use") return { type, id, name, input: {} };
  return type === "thinking" ? { type, thinking: "", signature: "" } : { type, text: "", citations: null };
}

function deltaOf(type: Block["type"], text: string): object {
  if (type === "tool_use") return { type: "input_json_delta", partial_json: text };
  return type === "thinking" ? { type: "thinking_delta", thinking: text } : { type: "text_delta", text };
}

function wholeBlock({ type, id, name, text }: Block): object {
  if (type === "tool_use") return { type, id, name, input: inputOf(text) };
  return type === "thinking" ? { type, thinking: text, signature: "" } : { type, text, citations: null };
}

/** Arguments that the model broke off or garbled have no object: the client sees an empty one. */
function inputOf(text: string): object {
  try {
    const value = parseExactJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
