// The response object: what was asked for, what came out, and how it ended.
import { writeExactJson } from "../../json/exact-json.ts";
import type { UsageCounts } from "../run/reply-facts.ts";
import type { OutputItem } from "./output-items.ts";
import type { ResponsesBody } from "./responses.schema.ts";

/** What is known before the output. */
export interface ResponseFacts {
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

export interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly OutputItem[];
  /** null until the end. */
  counts: UsageCounts | null;
  error: { code: string; message: string } | null;
  /** Whether it is kept. */
  store: boolean;
}

/** JSON text. Schemas of tools have their numbers as the client wrote them. */
export function responseJson(facts: ResponseFacts, state: ResponseState): string {
  const { body } = facts;
  const ended = state.status !== "in_progress";
  return writeExactJson({
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
  });
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
