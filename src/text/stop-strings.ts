// Finds stop strings in text that arrives in pieces, with an Aho-Corasick automaton over code points: a character costs the
// same however many and however long the stop strings are. It is immutable and shared by the choices of a request. Each
// choice keeps its own state number, which is 0 at the beginning of a text.
import { PromptError } from "./prompt-error.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";

const MAX_STOPS = 1_024;
const MAX_CHARACTERS = 65_536;
const codePoints = 0x110000;

export class StopStrings {
  readonly list: readonly string[];
  /** Length of each stop string in characters (code points). */
  readonly lengths: readonly number[];
  /** Length of the longest one; 0 if there are none. */
  readonly longest: number;
  /** state * codePoints + code point -> state, for the characters the stop strings spell. */
  readonly #next = new Map<number, number>();
  // Per state: the state of its longest proper suffix, and the lowest list index of the stops that end here (-1: none).
  readonly #fallback: number[] = [0];
  readonly #ending: number[] = [-1];

  constructor(list: readonly string[]) {
    this.list = list;
    if (list.length > MAX_STOPS) {
      const message = `${list.length} stop strings are too many: ${MAX_STOPS} are allowed.`;
      throw new PromptError("invalid_stop", "stop", message);
    }
    if (list.includes("")) throw new PromptError("invalid_stop", "stop", "A stop string must not be empty.");
    const characters = list.map((stop) => Array.from(stop, (char) => char.codePointAt(0)!));
    this.lengths = characters.map((stop) => stop.length);
    this.longest = this.lengths.reduce((longest, length) => Math.max(longest, length), 0);
    if (this.lengths.reduce((sum, length) => sum + length, 0) > MAX_CHARACTERS) {
      const message = `The stop strings are too long: ${MAX_CHARACTERS} characters in all are allowed.`;
      throw new PromptError("invalid_stop", "stop", message);
    }
    this.#build(characters);
  }

  /** The state after one more character. */
  advance(state: number, codePoint: number): number {
    for (let from = state; ; from = this.#fallback[from]!) {
      const next = this.#next.get(from * codePoints + codePoint);
      if (next !== undefined) return next;
      if (from === 0) return 0;
    }
  }

  /** Index of the stop string that ends in this state, the first in the list if several do; -1 = none. */
  endingAt(state: number): number {
    return this.#ending[state]!;
  }

  /** Level by level: a state's fallback is shorter, so it is always finished before it is needed. */
  #build(characters: readonly (readonly number[])[]): void {
    let growing = characters.map((stop, index) => ({ stop, index, state: 0 }));
    for (let depth = 0; growing.length > 0; depth++) {
      for (const path of growing) {
        path.state = this.#child(path.state, path.stop[depth]!, depth);
        if (depth === path.stop.length - 1) this.#ending[path.state] = lowest(path.index, this.#ending[path.state]!);
      }
      // Only now are all stops of this length known, so that longer ones may inherit from them.
      for (const { state } of growing) {
        this.#ending[state] = lowest(this.#ending[state]!, this.#ending[this.#fallback[state]!]!);
      }
      growing = growing.filter((path) => depth + 1 < path.stop.length);
    }
  }

  #child(parent: number, codePoint: number, depth: number): number {
    const key = parent * codePoints + codePoint;
    const known = this.#next.get(key);
    if (known !== undefined) return known;
    const fallback = depth === 0 ? 0 : this.advance(this.#fallback[parent]!, codePoint);
    const state = this.#fallback.push(fallback) - 1;
    this.#ending.push(-1);
    this.#next.set(key, state);
    return state;
  }
}

function lowest(first: number, second: number): number {
  if (first < 0 || second < 0) return Math.max(first, second);
  return Math.min(first, second);
}

// Words that must not be generated -> the token sequences that spell them: as given, and with a space in front where that
// has as many tokens and begins with another one. Other spellings of the same text are not covered.

const MAX_SEQUENCES = 128;
const MAX_WORD_LENGTH = 1_000;

export function tokeniseBadWords(tokenizer: Tokenizer, words: readonly string[]): number[][] {
  const sequences: number[][] = [];
  words.forEach((word, index) => {
    if (word.length > MAX_WORD_LENGTH) throw invalid(index, `A bad word has at most ${MAX_WORD_LENGTH} characters.`);
    const bare = word.trimStart();
    const plain = tokenizer.encode(bare);
    if (plain.length === 0) throw invalid(index, "A bad word must not be empty or only spaces.");
    sequences.push(plain);
    const spaced = tokenizer.encode(` ${bare}`);
    if (spaced.length === plain.length && spaced[0] !== plain[0]) sequences.push(spaced);
    if (sequences.length > MAX_SEQUENCES) {
      throw new PromptError(
        "invalid_bad_words",
        "bad_words",
        `Too many bad words: ${MAX_SEQUENCES} token sequences are allowed.`,
      );
    }
  });
  return sequences;
}

function invalid(index: number, message: string): PromptError {
  return new PromptError("invalid_bad_words", `bad_words.${index}`, message);
}
