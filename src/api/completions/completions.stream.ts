// Chunks of streamed text completions. This dialect has no role chunks. The first chunk of each choice carries the
// prompt's ids and the echo. The last one, or the usage chunk, carries the fingerprint.

import type { ServiceError } from "../../errors/service-error.ts";
import { DONE } from "../http/sse.ts";
import type { RunOutput } from "../run/generation-run.ts";
import { chunkUsage, type ReplyFacts, usageOf } from "../run/reply-facts.ts";
import { type ChunkSource, failedCompletion } from "../run/stream-runs.ts";
import type { PromptChoices } from "./completions.response.ts";

export class CompletionChunks implements ChunkSource {
  readonly #facts: ReplyFacts;
  readonly #prompts: readonly PromptChoices[];
  readonly #head: string;
  #size = 0;

  constructor(facts: ReplyFacts, prompts: readonly PromptChoices[]) {
    this.#facts = facts;
    this.#prompts = prompts;
    const { id, created, model } = facts;
    this.#head = JSON.stringify({ id, object: "text_completion", created, model }).slice(0, -1);
  }

  get size(): number {
    return this.#size + this.#prompts.reduce((sum, prompt) => sum + prompt.logprobSize, 0);
  }

  async accept(run: number, output: RunOutput): Promise<void> {
    await this.#prompts[run]!.accept(output);
    if (output.type === "delta") this.#size += 32 * output.tokenIds.length;
  }

  take(): string {
    this.#size = 0;
    let events = "";
    for (const prompt of this.#prompts) {
      for (const { choice, json, ended } of prompt.take()) {
        const fingerprint = ended && !this.#facts.includeUsage ? this.#fingerprint : "";
        events += `data: ${this.#head},"choices":[${json}]${fingerprint}${this.#continuousUsage(prompt, choice)}}\n\n`;
      }
    }
    return events;
  }

  closing(): string {
    if (!this.#facts.includeUsage) return DONE;
    const total = this.#prompts.reduce((sum, prompt) => sum + prompt.shownTokens, 0);
    const cached = this.#prompts.reduce((sum, prompt) => sum + prompt.cachedTokens, 0);
    const usage = chunkUsage(usageOf(this.#facts, { completion: total, cached, reasoning: 0 }));
    return `data: ${this.#head},"choices":[]${this.#fingerprint},"usage":${JSON.stringify(usage)}}\n\n${DONE}`;
  }

  failure(error: ServiceError): string {
    return failedCompletion(error);
  }

  get #fingerprint(): string {
    return `,"system_fingerprint":${JSON.stringify(this.#facts.systemFingerprint)}`;
  }

  #continuousUsage(prompt: PromptChoices, choice: number): string {
    if (!this.#facts.includeUsage || !this.#facts.continuousUsage) return "";
    const counts = { completion: prompt.shownTokensOf(choice), cached: prompt.cachedTokens, reasoning: 0 };
    const usage = usageOf({ ...this.#facts, promptTokens: prompt.promptTokens }, counts);
    return `,"usage":${JSON.stringify(chunkUsage(usage))}`;
  }
}
