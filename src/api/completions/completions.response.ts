// Collects the output of one prompt's choices and builds their wire objects, for whole replies and stream chunks.
// Clients see the index `promptIndex · n + choice`.
import type { PrefillOutput } from "../../engine/contract.ts";
import { inTurns } from "../../pacing/turns.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { ChoiceDelta, ChoiceEnd } from "../run/choice-output.ts";
import type { RunOutput } from "../run/generation-run.ts";
import { jsonWith, promptLogprobsJson } from "../run/logprobs.wire.ts";
import { fromContent, promptArrays, TextLogprobArrays } from "./completions.logprobs.ts";

export interface TextReplyOptions {
  promptIndex: number;
  promptTokenIds: readonly number[];
  n: number;
  /** The prompt's text, prepended to every choice; null without echo. */
  echo: string | null;
  /** max_tokens was 0: show only the prompt and hide the one token that the engine generated. */
  promptOnly: boolean;
  logprobs: boolean;
  tokensAsIds: boolean;
  returnTokenIds: boolean;
  /** Whether choices carry prompt_logprobs. Streams have no place for them. */
  promptLogprobs: boolean;
  streams: boolean;
}

interface Pending {
  text: string;
  tokenIds: number[];
  logprobs: TextLogprobArrays;
  end: ChoiceEnd | null;
  /** Whether anything was added since the last `take`. */
  dirty: boolean;
  opened: boolean;
  /** Whether the prompt's ids were sent. Only the first chunk has them. */
  promptSent: boolean;
  /** Tokens shown so far. */
  shown: number;
}

interface TakenChoice {
  /** Index among this prompt's choices, not the wire index. */
  choice: number;
  json: string;
  ended: boolean;
}

/** The choices of one prompt. `take` returns the output since its last call; a whole reply calls it once. */
export class PromptChoices {
  readonly #reply: TextReplyOptions;
  readonly #tokenizer: Tokenizer;
  readonly #choices: Pending[];
  /** Of the echoed prompt; null: not known. */
  #promptArrays: TextLogprobArrays | null = null;
  /** prompt_logprobs of every choice, as JSON. */
  #promptLogprobs: string | null = null;
  #cachedTokens = 0;

  constructor(reply: TextReplyOptions, tokenizer: Tokenizer) {
    this.#reply = reply;
    this.#tokenizer = tokenizer;
    this.#choices = Array.from({ length: reply.n }, () => ({
      text: "",
      tokenIds: [],
      logprobs: new TextLogprobArrays(),
      end: null,
      dirty: false,
      opened: false,
      promptSent: false,
      shown: 0,
    }));
  }

  get promptTokens(): number {
    return this.#reply.promptTokenIds.length;
  }

  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  /** What the engine says about a transfer of keys and values; null = nothing. */
  get kvTransferParams(): ChoiceEnd["kvTransferParams"] | null {
    return this.#choices.find(({ end }) => end?.kvTransferParams)?.end?.kvTransferParams ?? null;
  }

  get shownTokens(): number {
    return this.#choices.reduce((sum, choice) => sum + choice.shown, 0);
  }

  shownTokensOf(choice: number): number {
    return this.#choices[choice]!.shown;
  }

  /** Characters of JSON that log-probabilities take until they are taken. */
  get logprobSize(): number {
    return this.#choices.reduce((sum, { logprobs }) => sum + logprobs.length, 0);
  }

  /** What comes next waits for it. */
  async accept(output: RunOutput): Promise<void> {
    if (output.type === "delta") return this.#add(output);
    this.#cachedTokens = output.cachedTokens ?? 0;
    if (output.type === "prefill") await this.#readPrompt(output.promptLogprobs);
  }

  /** A long prompt has many log-probabilities. All choices show the same. */
  async #readPrompt(found: PrefillOutput["promptLogprobs"]): Promise<void> {
    const { echo, logprobs, promptLogprobs, promptTokenIds, tokensAsIds } = this.#reply;
    if (echo !== null && logprobs) {
      this.#promptArrays = await inTurns(promptArrays(this.#tokenizer, promptTokenIds, found ?? [], tokensAsIds));
    }
    if (found !== null && promptLogprobs) {
      this.#promptLogprobs = await promptLogprobsJson(this.#tokenizer, promptTokenIds, found);
    }
  }

  #add(delta: ChoiceDelta): void {
    const choice = this.#choices[delta.index]!;
    this.#open(choice);
    if (!this.#reply.promptOnly) {
      for (const part of delta.parts) choice.text += part.kind === "content" ? part.text : "";
      choice.tokenIds.push(...delta.tokenIds);
      for (const entry of delta.logprobs) choice.logprobs.add(fromContent(entry));
      choice.shown += delta.tokenIds.length;
      choice.end = delta.end ?? choice.end;
    } else if (delta.end !== null) {
      choice.end = { reason: "length", stopReason: null };
    }
    choice.dirty = true;
  }

  /** The choices with new output, one by one: each may be long. */
  *take(): Generator<TakenChoice> {
    for (const [number, choice] of this.#choices.entries()) {
      if (!choice.dirty) continue;
      yield { choice: number, json: this.#json(choice, number), ended: choice.end !== null };
      Object.assign(choice, { text: "", tokenIds: [], dirty: false, promptSent: true });
    }
  }

  #open(choice: Pending): void {
    if (choice.opened) return;
    choice.opened = true;
    if (this.#reply.echo === null) return;
    choice.text = this.#reply.echo;
    if (this.#promptArrays !== null) choice.logprobs = TextLogprobArrays.behind(this.#promptArrays);
  }

  #json(choice: Pending, number: number): string {
    const { promptIndex, n, returnTokenIds, logprobs, promptTokenIds, streams, echo } = this.#reply;
    const showsPromptIds = (returnTokenIds || (streams && echo !== null)) && !choice.promptSent;
    const wire = {
      index: promptIndex * n + number,
      text: choice.text,
      logprobs: null,
      finish_reason: choice.end?.reason ?? null,
      stop_reason: choice.end?.stopReason ?? null,
      token_ids: returnTokenIds ? choice.tokenIds : null,
      ...(streams ? {} : { prompt_logprobs: null }),
      prompt_token_ids: showsPromptIds ? promptTokenIds : null,
    };
    return jsonWith(wire, {
      logprobs: logprobs ? choice.logprobs.take() : null,
      ...(streams ? {} : { prompt_logprobs: this.#promptLogprobs }),
    });
  }
}
