// The non-streaming chat reply: collects every delta of every choice and builds the object, key by key. Keys are
// always all present; what was not asked for is null.
import type { PrefillOutput } from "../../engine/contract.ts";
import type { ReplyDelta } from "../../text/reply-parser.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { ChoiceDelta, ChoiceEnd } from "../run/choice-output.ts";
import type { RunOutput } from "../run/generation-run.ts";
import { jsonWith, promptLogprobsJson } from "../run/logprobs.wire.ts";
import { type ReplyFacts, usageOf } from "../run/reply-facts.ts";
import { type ChatReplyOptions, wireFinishReason } from "./chat.reply-options.ts";
import { toolCallId } from "./tool-call-id.ts";

interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

interface Collected {
  content: string;
  reasoning: string;
  toolCalls: ToolCall[];
  tokenIds: number[];
  /** JSON of the entries, made as they come: all of it at the end would keep the other requests waiting. */
  logprobs: string;
  reasoningTokens: number;
  hasThought: boolean;
  end: ChoiceEnd | null;
}

export class ChatCollector {
  readonly #facts: ReplyFacts;
  readonly #options: ChatReplyOptions;
  readonly #choices: Collected[];
  #prefill: PrefillOutput | null = null;

  constructor(facts: ReplyFacts, options: ChatReplyOptions, n: number) {
    this.#facts = facts;
    this.#options = options;
    this.#choices = Array.from({ length: n }, () => ({
      content: "",
      reasoning: "",
      toolCalls: [],
      tokenIds: [],
      logprobs: "",
      reasoningTokens: 0,
      hasThought: false,
      end: null,
    }));
  }

  get #showsLogprobs(): boolean {
    return this.#options.logprobs && !this.#options.hideDetails;
  }

  accept(output: RunOutput): void {
    if (output.type === "prefill") {
      this.#prefill = output;
    } else {
      this.#add(output);
    }
  }

  #add(delta: ChoiceDelta): void {
    const choice = this.#choices[delta.index]!;
    for (const part of delta.parts) addPart(choice, part);
    choice.tokenIds.push(...delta.tokenIds);
    for (const entry of this.#showsLogprobs ? delta.logprobs : []) {
      choice.logprobs += `${choice.logprobs === "" ? "" : ","}${JSON.stringify(entry)}`;
    }
    choice.reasoningTokens += delta.reasoningTokens;
    choice.hasThought ||= delta.hasThought;
    choice.end = delta.end ?? choice.end;
  }

  /** The reply as JSON text; every choice must have ended. */
  toJson(tokenizer: Tokenizer): string {
    const facts = this.#facts;
    const { promptTokenIds, returnTokenIds } = this.#options;
    const counts = {
      completion: this.#choices.reduce((sum, choice) => sum + choice.tokenIds.length, 0),
      cached: this.#prefill?.cachedTokens ?? 0,
      reasoning: this.#choices.reduce((sum, choice) => sum + choice.reasoningTokens, 0),
    };
    const promptLogprobs = this.#prefill?.promptLogprobs ?? null;
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
      prompt_token_ids: returnTokenIds ? promptTokenIds : null,
      kv_transfer_params: null,
    };
    let choices = "";
    this.#choices.forEach((choice, index) => {
      choices += `${index === 0 ? "" : ","}${this.#choiceJson(choice, index)}`;
    });
    return jsonWith(reply, {
      choices: `[${choices}]`,
      prompt_logprobs: promptLogprobs === null ? null : promptLogprobsJson(tokenizer, promptTokenIds, promptLogprobs),
    });
  }

  #choiceJson(choice: Collected, index: number): string {
    const options = this.#options;
    const end = choice.end!;
    const calls = options.parallelToolCalls ? choice.toolCalls : choice.toolCalls.slice(0, 1);
    const { content, reasoning } = this.#texts(choice, calls.length > 0);
    const wire = {
      index,
      message: {
        role: options.role,
        content,
        refusal: null,
        annotations: null,
        audio: null,
        function_call: null,
        tool_calls: calls,
        reasoning,
        ...(options.reasoningAlias ? { reasoning_content: reasoning } : {}),
      },
      logprobs: null,
      finish_reason: wireFinishReason(end.reason, calls.length > 0, options.namedTool),
      stop_reason: end.stopReason,
      token_ids: options.returnTokenIds && !options.hideDetails ? choice.tokenIds : null,
      // A choice of a trained policy carries what a training job needs, prompt included.
      ...(options.policyVersion === null
        ? {}
        : { policy_version: options.policyVersion, prompt_token_ids: options.promptTokenIds }),
    };
    return jsonWith(wire, { logprobs: this.#showsLogprobs ? `{"content":[${choice.logprobs}]}` : null });
  }

  /** Behind a thought or beside tool calls, nothing to say is null; a plain reply or a named call has "" then. */
  #texts(choice: Collected, hasCalls: boolean): { content: string | null; reasoning: string | null } {
    const { includeReasoning, echo, namedTool } = this.#options;
    const text = echo + choice.content;
    const silent = text === "" && !namedTool && (hasCalls || choice.hasThought);
    const reasoning = includeReasoning && choice.reasoning !== "" ? choice.reasoning : null;
    return { content: silent ? null : text, reasoning };
  }
}

function addPart(choice: Collected, part: ReplyDelta): void {
  switch (part.kind) {
    case "content":
      choice.content += part.text;
      break;
    case "reasoning":
      choice.reasoning += part.text;
      break;
    case "tool_call": {
      choice.toolCalls[part.index] ??= { id: toolCallId(), type: "function", function: { name: "", arguments: "" } };
      const call = choice.toolCalls[part.index]!;
      call.function.name = part.name ?? call.function.name;
      call.function.arguments += part.argumentsText ?? "";
      break;
    }
    default:
      part satisfies never;
  }
}
