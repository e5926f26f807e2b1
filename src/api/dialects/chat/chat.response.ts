// The non-streaming chat reply: collects every delta of every choice and builds the object, key by key. Every key is always
// present; what was not asked for is null.
import type { Static } from "typebox";
import type { Finish, PrefillOutput } from "../../../engine/contract.ts";
import type { CallDelta, ReplyDelta } from "../../../text/reply-parser.ts";
import type { Tokenizer } from "../../../text/tokenizer-contract.ts";
import type { ChoiceDelta, ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import { jsonWith, promptLogprobsJson, type ReplyFacts, type UsageCounts, usageOf } from "../../generation/reply.ts";
import { type ChatReplyOptions, wireFinishReason } from "./chat.prepare.ts";
import type { ToolCall } from "./chat.schema.ts";
import { toolCallId } from "./chat.stream.ts";

interface Collected {
  content: string;
  reasoning: string;
  toolCalls: Static<typeof ToolCall>[];
  tokenIds: number[];
  /** JSON of the entries, written as they arrive. Writing all of it at the end would block other requests. */
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
  #cachedTokens = 0;

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
    if (output.type === "prefill") this.#prefill = output;
    if (output.type === "delta") this.#add(output);
    else this.#cachedTokens = output.cachedTokens ?? 0;
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

  get counts(): UsageCounts {
    const sum = (value: (choice: Collected) => number) => this.#choices.reduce((all, one) => all + value(one), 0);
    return {
      completion: sum(({ tokenIds }) => tokenIds.length),
      cached: this.#cachedTokens,
      reasoning: sum(({ reasoningTokens }) => reasoningTokens),
    };
  }

  /** The reply as JSON text; every choice must have ended. */
  async toJson(tokenizer: Tokenizer): Promise<string> {
    const { promptTokenIds, returnTokenIds } = this.#options;
    const found = this.#prefill?.promptLogprobs ?? null;
    const promptLogprobs = found === null ? null : await promptLogprobsJson(tokenizer, promptTokenIds, found);
    const kvTransferParams = this.#choices.find(({ end }) => end?.kvTransferParams)?.end?.kvTransferParams ?? null;
    const parts = { choices: this.choicesJson(), promptLogprobs, kvTransferParams };
    return chatReplyJson(this.#facts, this.counts, parts, returnTokenIds ? promptTokenIds : null);
  }

  /** JSON of the choices, separated by commas; `first` is the index of the first of them. */
  choicesJson(first = 0): string {
    let choices = "";
    this.#choices.forEach((choice, index) => {
      choices += `${index === 0 ? "" : ","}${this.#choiceJson(choice, first + index)}`;
    });
    return choices;
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

  /** Empty content is null after a thought or beside tool calls, and "" in a plain reply or beside a named call. */
  #texts(choice: Collected, hasCalls: boolean): { content: string | null; reasoning: string | null } {
    const { includeReasoning, echo, namedTool } = this.#options;
    const text = echo + choice.content;
    const silent = text === "" && !namedTool && (hasCalls || choice.hasThought);
    const reasoning = includeReasoning && choice.reasoning !== "" ? choice.reasoning : null;
    return { content: silent ? null : text, reasoning };
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

function addPart(choice: Collected, part: ReplyDelta): void {
  if (part.kind !== "tool_call") {
    choice[part.kind] += part.text;
    return;
  }
  choice.toolCalls[part.index] ??= newCall(part);
  const call = choice.toolCalls[part.index]!;
  if (call.type === "custom") call.custom.input += part.input ?? "";
  else call.function.arguments += part.argumentsText ?? "";
}

function newCall({ id = toolCallId(), name = "", input }: CallDelta): Static<typeof ToolCall> {
  return input === undefined
    ? { id, type: "function", function: { name, arguments: "" } }
    : { id, type: "custom", custom: { name, input: "" } };
}
