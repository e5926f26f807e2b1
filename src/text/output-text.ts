// The text of one choice as it grows: detokenising, stop strings, and what may be shown already. The last (longest stop - 1)
// characters are held back, because a stop string may begin in them; in include mode nothing is. Token ids and
// log-probabilities are the caller's business and are not held back.

import { Detokenizer, type DetokenizerOptions } from "./detokenizer.ts";
import { StopStrings } from "./stop-strings.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";

export interface OutputTextOptions extends DetokenizerOptions {
  stops: StopStrings | readonly string[];
  /** Keep the stop string, or the text of the stop token, in the output. */
  includeStop: boolean;
  /** Stop strings that end within the text of the first `minTokens` tokens do not count. */
  minTokens: number;
}

export interface TextDelta {
  /** What the token decodes to, shown or not. */
  decoded: string;
  /** Text that may be shown now; "" when nothing is certain. */
  delta: string;
  /** The stop string that ended the text; nothing is added after it. */
  matched: string | null;
}

export class OutputText {
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopStrings;
  readonly #includeStop: boolean;
  readonly #minTokens: number;
  readonly #holdBack: number;
  #tokens = 0;
  #state = 0;
  #matched: string | null = null;
  /** Text decoded but not given out, and its length in characters (not UTF-16 units). */
  #held = "";
  #heldLength = 0;

  constructor(tokenizer: Tokenizer, options: OutputTextOptions) {
    this.#detokenizer = new Detokenizer(tokenizer, options);
    this.#stops = options.stops instanceof StopStrings ? options.stops : new StopStrings(options.stops);
    this.#includeStop = options.includeStop;
    this.#minTokens = options.minTokens;
    this.#holdBack = options.includeStop ? 0 : Math.max(0, this.#stops.longest - 1);
  }

  /** `isStopToken`: this token ended the choice (EOS or a stop id), so its text is left out unless stops are included. */
  push(id: number, { isStopToken = false }: { isStopToken?: boolean } = {}): TextDelta {
    this.#tokens++;
    if (this.#matched !== null || (isStopToken && !this.#includeStop)) {
      return { decoded: "", delta: "", matched: this.#matched };
    }
    const decoded = this.#detokenizer.push(id);
    if (this.#stops.longest === 0) return { decoded, delta: decoded, matched: null };
    this.#append(decoded);
    const shown = this.#matched === null ? this.#heldLength - this.#holdBack : this.#heldLength;
    return { decoded, delta: this.#release(shown), matched: this.#matched };
  }

  /** The end of the choice: the text still held back. Bytes of an unfinished character are dropped. */
  finish(): string {
    return this.#release(this.#heldLength);
  }

  #append(text: string): void {
    const watching = this.#tokens > this.#minTokens;
    let end = this.#heldLength;
    for (const char of text) {
      end++;
      this.#state = this.#stops.advance(this.#state, char.codePointAt(0)!);
      const stop = this.#stops.endingAt(this.#state);
      if (stop < 0 || !watching) continue;
      this.#matched = this.#stops.list[stop]!;
      this.#heldLength = this.#includeStop ? end : end - this.#stops.lengths[stop]!;
      this.#held = firstCharacters(this.#held + text, this.#heldLength);
      return;
    }
    this.#held += text;
    this.#heldLength = end;
  }

  #release(count: number): string {
    if (count <= 0) return "";
    const shown = firstCharacters(this.#held, count);
    this.#held = this.#held.slice(shown.length);
    this.#heldLength -= count;
    return shown;
  }
}

/** Stands in where nobody reads a choice as text. Nothing is detokenised. */
export const noText: Pick<OutputText, "push" | "finish"> = {
  push: () => ({ decoded: "", delta: "", matched: null }),
  finish: () => "",
};

/** The first `count` code points. */
function firstCharacters(text: string, count: number): string {
  let end = 0;
  for (let i = 0; i < count && end < text.length; i++) end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  return text.slice(0, end);
}
