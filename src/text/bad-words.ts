// Words that must not be generated -> the token sequences that spell them: as given, and with a space in front where that
// has as many tokens and begins with another one. Other spellings of the same text are not covered.

import { PromptError } from "./prompt-error.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";

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
