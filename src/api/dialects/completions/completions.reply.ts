// What the choices of one prompt have produced, as JSON.
import type { Static } from "typebox";
import type { PrefillOutput } from "../../../engine/contract.ts";
import { inTurns } from "../../../pacing/turns.ts";
import type { TokenLogprobs } from "../../../sampling/token-logprobs.ts";
import { TokenTextWalk } from "../../../text/token-text.ts";
import type { Tokenizer } from "../../../text/tokenizer-contract.ts";
import type { ChoiceDelta, ChoiceEnd } from "../../generation/choice-output.ts";
import type { RunOutput } from "../../generation/generation.ts";
import { floored, jsonWith, promptLogprobsJson, type WireTokenLogprob } from "../../generation/reply.ts";
import type { TextLogprobs } from "./completions.schema.ts";

// The older log-probability format: parallel arrays of tokens, values, alternatives and text offsets. Streamed pieces
// concatenate to the arrays of a whole reply.

/** Entries between two pauses: about a millisecond. */
const ENTRIES_PER_STEP = 1024;

/** One position: token text, value (null for the first token of a text) and alternatives. */
export interface TextLogprob {
  token: string;
  logprob: number | null;
  top: Record<string, number> | null;
}

type ArrayName = keyof Static<typeof TextLogprobs>;

/** The arrays of a text, as JSON that grows. */
class TextLogprobArrays {
  /** In characters, as Python clients count, not UTF-16 units. */
  #offset = 0;
  /** Elements as JSON, with commas. They are joined when they are taken. */
  #parts: Record<ArrayName, string[]> = { text_offset: [], token_logprobs: [], tokens: [], top_logprobs: [] };
  /** Characters of JSON since the last `take`. */
  #length = 0;

  /** What follows this much, which several texts may begin with. */
  static behind(prompt: TextLogprobArrays): TextLogprobArrays {
    const arrays = new TextLogprobArrays();
    arrays.#offset = prompt.#offset;
    arrays.#length = prompt.#length;
    for (const [name, parts] of Object.entries(prompt.#parts)) {
      if (parts.length > 1) parts.splice(0, parts.length, parts.join(""));
      arrays.#parts[name as ArrayName] = [...parts];
    }
    return arrays;
  }

  get length(): number {
    return this.#length;
  }

  add({ token, logprob, top }: TextLogprob): void {
    const element = { text_offset: this.#offset, token_logprobs: logprob, tokens: token, top_logprobs: top };
    for (const [name, value] of Object.entries(element)) {
      const parts = this.#parts[name as ArrayName];
      const json = JSON.stringify(value);
      this.#length += json.length + 1;
      parts.push(parts.length === 0 ? json : `,${json}`);
    }
    this.#offset += Array.from(token).length;
  }

  /** The arrays since the last call. Offsets go on. */
  take(): string {
    const { text_offset, token_logprobs, tokens, top_logprobs } = this.#parts;
    const list = (parts: string[]) => `[${parts.splice(0).join("")}]`;
    this.#length = 0;
    const arrays: Record<ArrayName, string> = {
      text_offset: list(text_offset),
      token_logprobs: list(token_logprobs),
      tokens: list(tokens),
      top_logprobs: list(top_logprobs),
    };
    return jsonWith(arrays, arrays);
  }
}

/** Converts from the chat form. The alternatives always include the token itself, so there are k or k + 1. */
function fromContent(entry: WireTokenLogprob): TextLogprob {
  const top = [[entry.token, entry.logprob] as const, ...entry.top_logprobs.map((t) => [t.token, t.logprob] as const)];
  return { token: entry.token, logprob: entry.logprob, top: Object.fromEntries(top) };
}

/** The prompt's own tokens, for echo. Pauses. */
function* promptArrays(
  tokenizer: Tokenizer,
  ids: readonly number[],
  logprobs: readonly (TokenLogprobs | null)[],
  asIds: boolean,
): Generator<undefined, TextLogprobArrays> {
  const walk = new TokenTextWalk(tokenizer, { asIds });
  const arrays = new TextLogprobArrays();
  let entries = 0;
  for (const [i, id] of ids.entries()) {
    const here = logprobs[i] ?? null;
    const top: [string, number][] = [];
    for (const [k, other] of (here?.topIds ?? []).entries()) {
      top.push([walk.text(other), floored(here!.topLogprobs[k]!)]);
      if (++entries % ENTRIES_PER_STEP === 0) yield;
    }
    const { token } = walk.advance(id);
    if (here === null) arrays.add({ token, logprob: null, top: null });
    else {
      const logprob = floored(here.logprob);
      arrays.add({ token, logprob, top: Object.fromEntries([[token, logprob], ...top]) });
    }
    if (++entries % ENTRIES_PER_STEP === 0) yield;
  }
  return arrays;
}

// Collects the output of one prompt's choices and builds their wire objects, for whole replies and stream chunks.
// Clients see the index `promptIndex · n + choice`.

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
