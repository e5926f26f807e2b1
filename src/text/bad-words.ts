// Words that must not be generated -> the token sequences that would spell them: as given, and with a space in front
// where that is not the same sequence after a space of its own. Other spellings of the same text are not covered.

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
    if (!endsWith(spaced, plain)) sequences.push(spaced);
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

/** Then forbidding the shorter one forbids the longer one too. */
function endsWith(ids: readonly number[], tail: readonly number[]): boolean {
  const start = ids.length - tail.length;
  return start >= 0 && tail.every((id, i) => ids[start + i] === id);
}

function invalid(index: number, message: string): PromptError {
  return new PromptError("invalid_bad_words", `bad_words.${index}`, message);
}
