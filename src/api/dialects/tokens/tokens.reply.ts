// Builds replies of token ids, whole or in chunks. Chunks have no model and no time, as in vLLM.
import type { PrefillOutput } from "../../../engine/contract.ts";
import type { ServiceError } from "../../../errors/service-error.ts";
import type { Tokenizer } from "../../../text/tokenizer-contract.ts";
import { failedCompletion, type Reply } from "../../generation/answer.ts";
import type { ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import {
  chunkUsage,
  jsonWith,
  promptLogprobsJson,
  type ReplyFacts,
  type UsageCounts,
  usageOf,
  type WireLogprob,
  type WireTokenLogprob,
} from "../../generation/reply.ts";
import { DONE } from "../../http/streams.ts";

export interface TokenReplyOptions {
  promptTokenIds: readonly number[];
  n: number;
  logprobs: boolean;
  /** null: not shown. */
  policyVersion: number | null;
  /** A choice's tokens wait for so many to share a chunk. Its first and last tokens do not wait. */
  chunkTokens: number;
}

interface Pending {
  tokenIds: number[];
  /** JSON of the entries. */
  logprobs: string;
  end: ChoiceEnd | null;
  /** Tokens taken so far. */
  taken: number;
  /** The end was taken. */
  closed: boolean;
}

export class TokenChoices implements Reply {
  readonly #facts: ReplyFacts;
  readonly #options: TokenReplyOptions;
  readonly #choices: Pending[];
  #promptLogprobs: PrefillOutput["promptLogprobs"] = null;
  #cachedTokens = 0;
  #size = 0;

  constructor(facts: ReplyFacts, options: TokenReplyOptions) {
    this.#facts = facts;
    this.#options = options;
    this.#choices = Array.from({ length: options.n }, () => ({
      tokenIds: [],
      logprobs: "",
      end: null,
      taken: 0,
      closed: false,
    }));
  }

  get size(): number {
    return this.#size;
  }

  accept(_run: number, output: RunOutput): void {
    if (output.type !== "delta") {
      if (output.type === "prefill") this.#promptLogprobs = output.promptLogprobs;
      this.#cachedTokens = output.cachedTokens ?? 0;
      return;
    }
    const choice = this.#choices[output.index]!;
    choice.tokenIds.push(...output.tokenIds);
    choice.end = output.end ?? choice.end;
    const before = choice.logprobs.length;
    for (const entry of output.logprobs) choice.logprobs += `${choice.logprobs === "" ? "" : ","}${entryJson(entry)}`;
    this.#size += 8 * output.tokenIds.length + choice.logprobs.length - before;
  }

  take(): string {
    let events = "";
    this.#choices.forEach((choice, index) => {
      if (!this.#isDue(choice)) return;
      const json = this.#takeChoice(choice, index);
      const usage = this.#facts.includeUsage && this.#facts.continuousUsage ? this.#usage(choice.taken) : null;
      events += this.#event(json, usage);
    });
    return events;
  }

  closing(): string {
    return (this.#facts.includeUsage ? this.#event("", this.#usage(this.#taken)) : "") + DONE;
  }

  failure(error: ServiceError): string {
    return failedCompletion(error);
  }

  /** The whole reply as JSON text; every choice must have ended. */
  async toJson(tokenizer: Tokenizer): Promise<string> {
    const { id, model, created } = this.#facts;
    const choices = this.#choices.map((choice, index) => this.#takeChoice(choice, index));
    const found = this.#promptLogprobs;
    const reply = {
      request_id: id,
      model,
      created,
      choices: null,
      usage: usageOf(this.#facts, this.#counts(this.#taken)),
      prompt_logprobs: null,
      kv_transfer_params: this.#choices.find(({ end }) => end?.kvTransferParams)?.end?.kvTransferParams ?? null,
    };
    return jsonWith(reply, {
      choices: `[${choices.join(",")}]`,
      prompt_logprobs: found === null ? null : await promptLogprobsJson(tokenizer, this.#options.promptTokenIds, found),
    });
  }

  get #taken(): number {
    return this.#choices.reduce((sum, { taken }) => sum + taken, 0);
  }

  #isDue({ tokenIds, end, taken, closed }: Pending): boolean {
    if (end !== null) return !closed;
    return tokenIds.length >= (taken === 0 ? 1 : this.#options.chunkTokens);
  }

  #takeChoice(choice: Pending, index: number): string {
    const { logprobs, policyVersion } = this.#options;
    const wire = {
      index,
      token_ids: choice.tokenIds,
      logprobs: null,
      finish_reason: choice.end?.reason ?? null,
      ...(policyVersion === null ? {} : { policy_version: policyVersion }),
    };
    const json = jsonWith(wire, { logprobs: logprobs ? `{"content":[${choice.logprobs}]}` : null });
    this.#size -= Math.min(this.#size, 8 * choice.tokenIds.length + choice.logprobs.length);
    choice.taken += choice.tokenIds.length;
    Object.assign(choice, { tokenIds: [], logprobs: "", closed: choice.end !== null });
    return json;
  }

  #event(choices: string, usage: object | null): string {
    const chunk = { request_id: this.#facts.id, choices: null, usage };
    return `data: ${jsonWith(chunk, { choices: `[${choices}]` })}\n\n`;
  }

  #usage(completion: number): object {
    return chunkUsage(usageOf(this.#facts, this.#counts(completion)));
  }

  #counts(completion: number): UsageCounts {
    return { completion, cached: this.#cachedTokens, reasoning: 0 };
  }
}

/** Tokens are ids here and have no bytes. */
function entryJson({ top_logprobs: top, ...own }: WireTokenLogprob): string {
  const bare = ({ token, logprob }: WireLogprob) => ({ token, logprob, bytes: null });
  return JSON.stringify({ ...bare(own), top_logprobs: top.map(bare) });
}
