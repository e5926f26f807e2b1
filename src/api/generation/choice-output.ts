// Turns the sampled tokens of one choice into what a client may see: text with stop strings applied, parsed parts, log
// probabilities and the final reason. The only wire shapes it knows are the log-probability entries.
import type { Finish, FinishReason, TokensOutput } from "../../engine/contract.ts";
import type { OutputText } from "../../text/output-text.ts";
import type { ReasoningParser } from "../../text/reasoning.ts";
import type { ReplyDelta, ReplyParser } from "../../text/reply-parser.ts";
import type { TokenTextWalk } from "../../text/token-text.ts";
import { contentEntry, type WireTokenLogprob } from "./reply.ts";

export interface ChoiceEnd {
  reason: FinishReason;
  stopReason: number | string | null;
  kvTransferParams?: Finish["kvTransferParams"];
}

/** What one engine output adds to a choice. */
export interface ChoiceDelta {
  type: "delta";
  index: number;
  parts: ReplyDelta[];
  tokenIds: number[];
  /** Empty when none were asked for. */
  logprobs: WireTokenLogprob[];
  /** How many of the tokens were reasoning. */
  reasoningTokens: number;
  /** There is or was a thought, empty or not. */
  hasThought: boolean;
  end: ChoiceEnd | null;
  /** A stop string has ended the choice, and the engine must be told. */
  stopEngine: boolean;
}

export interface ChoiceParts {
  index: number;
  text: Pick<OutputText, "push" | "finish">;
  parser: ReplyParser;
  /** Sees the text before stop strings hold it back, to count tokens. null: reasoning is not parsed. */
  thoughtMeter: ReasoningParser | null;
  /** null: no log probabilities. */
  logprobs: { walk: TokenTextWalk; top: number } | null;
}

export class ChoiceOutput {
  readonly #parts: ChoiceParts;
  #tokens = 0;
  #end: ChoiceEnd | null = null;

  constructor(parts: ChoiceParts) {
    this.#parts = parts;
  }

  /** Tokens generated so far, stop tokens included. */
  get tokens(): number {
    return this.#tokens;
  }

  get end(): ChoiceEnd | null {
    return this.#end;
  }

  accept({ tokens, finish }: TokensOutput): ChoiceDelta {
    const { index, text: detokenizer, parser, thoughtMeter, logprobs } = this.#parts;
    const delta = emptyDelta(index);
    if (this.#end !== null) {
      return delta; // produced before the engine heard of the stop string
    }
    let text = "";
    let matched: string | null = null;
    for (let i = 0; i < tokens.length && matched === null; i++) {
      const token = tokens[i]!;
      const isStopToken = finish?.reason === "stop" && i === tokens.length - 1;
      const pushed = detokenizer.push(token.id, { isStopToken });
      text += pushed.delta;
      matched = pushed.matched;
      thoughtMeter?.push(pushed.decoded);
      if (thoughtMeter?.reasoning && !isStopToken) delta.reasoningTokens++;
      delta.tokenIds.push(token.id);
      if (logprobs !== null) delta.logprobs.push(contentEntry(logprobs.walk, token, logprobs.top));
    }
    this.#tokens += delta.tokenIds.length;
    if (matched !== null) {
      this.#end = { reason: "stop", stopReason: matched };
      delta.stopEngine = finish === null;
    } else if (finish !== null) {
      const { reason, stopReason, kvTransferParams } = finish;
      this.#end = { reason, stopReason, ...(kvTransferParams === undefined ? {} : { kvTransferParams }) };
    }
    delta.end = this.#end;
    if (this.#end !== null) text += detokenizer.finish();
    delta.parts = parser.push(text);
    delta.hasThought = thoughtMeter?.hasThought ?? false;
    if (this.#end !== null) delta.parts.push(...parser.finish());
    return delta;
  }
}

function emptyDelta(index: number): ChoiceDelta {
  return {
    type: "delta",
    index,
    parts: [],
    tokenIds: [],
    logprobs: [],
    reasoningTokens: 0,
    hasThought: false,
    end: null,
    stopEngine: false,
  };
}
