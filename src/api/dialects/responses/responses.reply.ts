// The reply of the Responses API, whole or as events. Events are numbered from 0 and come in this order: created, in_progress,
// the events of each item, and at last completed, incomplete or failed. Text that cannot be sent yet is merged.

import type { ServiceError } from "../../../errors/service-error.ts";
import type { Reply } from "../../generation/answer.ts";
import type { ChoiceDelta, ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import type { UsageCounts } from "../../generation/reply.ts";
import { namedEvent } from "../../http/streams.ts";
import { writeWithLists } from "./logprob-list.ts";
import { type OutputItem, OutputItems, type OutputOptions } from "./output-items.ts";
import type { ResponsesBody } from "./responses.schema.ts";

// The response object: what was asked for, what came out, and how it ended.

/** What is known before the output. */
interface ResponseFacts {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  body: ResponsesBody;
  model: string;
  temperature: number;
  topP: number;
  promptTokens: number;
  /** Step of a trained policy; null for anything else. */
  policyVersion: number | null;
}

interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly OutputItem[];
  /** null until the end. */
  counts: UsageCounts | null;
  error: { code: string; message: string } | null;
  /** Whether it is kept. */
  store: boolean;
}

/** Schemas of tools have their numbers as the client wrote them. */
function responseOf(facts: ResponseFacts, state: ResponseState): object {
  const { body } = facts;
  const ended = state.status !== "in_progress";
  return {
    id: facts.id,
    object: "response",
    created_at: facts.createdAt,
    completed_at: state.status === "completed" ? Math.floor(Date.now() / 1000) : null,
    status: state.status,
    background: false,
    error: state.error,
    incomplete_details: state.status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    metadata: body.metadata ?? {},
    model: facts.model,
    output: state.output,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: body.reasoning?.effort ?? null, summary: null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: "default",
    store: state.store,
    temperature: facts.temperature,
    text: { format: body.text?.format ?? { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: facts.topP,
    truncation: body.truncation ?? "disabled",
    usage: ended && state.counts !== null ? usageOf(facts.promptTokens, state.counts) : null,
    user: body.user ?? null,
    ...(facts.policyVersion === null ? {} : { policy_version: facts.policyVersion }),
  };
}

function usageOf(promptTokens: number, { completion, cached, reasoning }: UsageCounts) {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: promptTokens + completion,
  };
}

/** Keeps a response for later, given as JSON. false: it could not be kept. null: nobody asked for that. */
export type Keep = ((response: string, output: readonly OutputItem[]) => Promise<boolean>) | null;

export class ResponseReply implements Reply {
  readonly #facts: ResponseFacts;
  readonly #keep: Keep;
  readonly #items: OutputItems;
  readonly #counts = { completion: 0, cached: 0, reasoning: 0 };
  #events = "";
  #sequence = 0;
  #opened = false;
  #end: ChoiceEnd | null = null;

  constructor(facts: ResponseFacts, options: OutputOptions, keep: Keep, streams: boolean) {
    this.#facts = facts;
    this.#keep = keep;
    this.#items = new OutputItems(options, (type, fields) => {
      if (streams) this.#event(type, this.#write(fields).slice(1, -1));
    });
  }

  get size(): number {
    return this.#events.length + this.#items.unsent;
  }

  accept(_run: number, output: RunOutput): void {
    if (output.type !== "delta") {
      this.#counts.cached = output.cachedTokens ?? 0;
      return;
    }
    this.#open();
    this.#add(output);
  }

  take(): string {
    this.#items.flush();
    const events = this.#events;
    this.#events = "";
    return events;
  }

  async closing(): Promise<string> {
    if (this.#end === null) return ""; // the client is gone
    const response = await this.toJson();
    this.#event(`response.${this.#status}`, `"response":${response}`);
    return this.take();
  }

  failure(error: ServiceError): string {
    this.#open();
    const failed = { status: "failed", error: { code: errorCode(error), message: error.message } } as const;
    this.#event("response.failed", `"response":${this.#json({ ...failed, store: false })}`);
    return this.take();
  }

  /** The whole response. The output must have ended. */
  async toJson(): Promise<string> {
    const ended = { status: this.#status, error: null };
    this.#items.end(this.#status);
    const kept = this.#keep !== null && (await this.#keep(this.#json({ ...ended, store: true }), this.#items.items));
    return this.#json({ ...ended, store: kept });
  }

  get #status(): "completed" | "incomplete" {
    return this.#end?.reason === "length" ? "incomplete" : "completed";
  }

  #add(delta: ChoiceDelta): void {
    this.#items.hold(delta.logprobs.slice(delta.reasoningTokens));
    for (const part of delta.parts) this.#items.add(part);
    this.#counts.completion += delta.tokenIds.length;
    this.#counts.reasoning += delta.reasoningTokens;
    this.#end = delta.end ?? this.#end;
  }

  #open(): void {
    if (this.#opened) return;
    this.#opened = true;
    const response = this.#json({ status: "in_progress", error: null, store: this.#keep !== null });
    this.#event("response.created", `"response":${response}`);
    this.#event("response.in_progress", `"response":${response}`);
  }

  #json(state: Pick<ResponseState, "status" | "error" | "store">): string {
    return this.#write(responseOf(this.#facts, { ...state, output: this.#items.items, counts: this.#counts }));
  }

  #write(value: object): string {
    return writeWithLists(value, this.#items.lists);
  }

  /** `members`: the other fields as JSON, without braces. */
  #event(type: string, members: string): void {
    this.#events += namedEvent(type, `{"type":"${type}","sequence_number":${this.#sequence++},${members}}`);
  }
}

function errorCode({ status }: ServiceError): string {
  if (status === 429) return "rate_limit_exceeded";
  return status < 500 ? "invalid_prompt" : "server_error";
}
