// The vocabularies of the benchmark, the same on every machine. "8k" holds the tokens of the bundled model. "128k" and "150k"
// imitate the vocabulary of a large multilingual model: the bundled pieces, numbers up to three digits, runs of
// whitespace, clumps of punctuation, words with and without a leading space or punctuation mark, and short pieces of
// other scripts, in about the shares that published 128 k vocabularies have. The last id is the stop token.

import { fileURLToPath } from "node:url";
import type { TokenVocabulary } from "../../src/grammar/match/token-vocabulary.ts";
import { loadTextModel } from "../../src/text/text-model.ts";
import { Random } from "../models/random.ts";

export const VOCABULARIES = ["8k", "128k", "150k"] as const;
export type VocabularyName = (typeof VOCABULARIES)[number];

const SIZES: Readonly<Record<Exclude<VocabularyName, "8k">, number>> = { "128k": 128_000, "150k": 150_000 };
/** Pieces of scripts other than Latin. */
const FOREIGN = 34_000;
/** First letter, letters, and the most letters of a piece: Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, kana, CJK, Hangul. */
const SCRIPTS: readonly (readonly [first: number, letters: number, longest: number])[] = [
  [0x3b1, 25, 5],
  [0x430, 32, 7],
  [0x430, 32, 7],
  [0x5d0, 27, 4],
  [0x627, 36, 5],
  [0x905, 53, 4],
  [0xe01, 46, 4],
  [0x3041, 86, 4],
  [0x4e00, 7000, 2],
  [0x4e00, 2000, 3],
  [0xac00, 6000, 2],
];
const MARKS = ['"', "'", ",", ".", ":", ";", "(", ")", "[", "]", "{", "}", "<", ">", "/", "\\", "=", "-", "_", "*"];
/** A quarter of the words also come with one of these in front, as pre-tokenizers of large models allow. */
const WORD_MARKS = ['"', ".", "_", "(", "/", "-", "'"];
/** From bench/dist/bench/grammar/. */
const BUNDLED = fileURLToPath(new URL("../../../../models/flywheel-mini", import.meta.url));

export async function loadVocabulary(name: VocabularyName): Promise<TokenVocabulary> {
  const { tokenizer } = await loadTextModel(BUNDLED, {});
  const bundled: string[] = [];
  for (let id = 0; id < tokenizer.vocabSize; id++) {
    if (tokenizer.piece(id) !== null && !tokenizer.isSpecial(id))
      bundled.push(Buffer.from(tokenizer.bytes(id)).toString("latin1"));
  }
  return vocabularyOf(name === "8k" ? new Set(bundled) : largeVocabulary(bundled, SIZES[name]));
}

/** Byte strings, one byte per character. */
function largeVocabulary(bundled: readonly string[], size: number): Set<string> {
  const random = new Random(1);
  const pieces = new Set(bundled);
  for (let byte = 0; byte < 256; byte++) pieces.add(String.fromCharCode(byte));
  for (let number = 0; number < 1000; number++) {
    for (let digits = 1; digits <= 3; digits++) pieces.add(String(number).padStart(digits, "0"));
  }
  for (let length = 1; length <= 80; length++) {
    pieces.add(" ".repeat(length));
    if (length <= 16) for (const start of ["\n", "\n\n", "\r\n", "\t"]) pieces.add(start + " ".repeat(length - 1));
    if (length <= 8) for (const mark of ["\t", "\n", "-", "=", "*", "_", "#", "/"]) pieces.add(mark.repeat(length));
  }
  for (const a of MARKS) {
    for (const b of MARKS) {
      pieces
        .add(a + b)
        .add(` ${a}${b}`)
        .add(`${a}${b}\n`);
      for (const c of MARKS.slice(0, 12)) pieces.add(a + b + c);
    }
  }
  const foreign = pieces.size + FOREIGN;
  while (pieces.size < foreign) {
    const [first, letters, longest] = SCRIPTS[random.below(SCRIPTS.length)]!;
    let word = random.below(4) === 0 ? " " : "";
    for (let length = 1 + random.below(longest); length > 0; length--)
      word += String.fromCodePoint(first + random.below(letters));
    pieces.add(Buffer.from(word).toString("latin1"));
  }
  const stems = bundled.map((piece) => piece.trim()).filter((piece) => /^[A-Za-z]{2,}$/.test(piece));
  const endings = stems.filter((stem) => /^[a-z]{2,4}$/.test(stem));
  while (pieces.size < size) {
    const stem = stems[random.below(stems.length)]!;
    const word = random.below(5) === 0 ? stem : stem + endings[random.below(endings.length)]!;
    pieces.add(random.below(3) === 0 ? word : ` ${word}`);
    if (random.below(4) === 0) pieces.add(WORD_MARKS[random.below(WORD_MARKS.length)]! + word);
    if (random.below(4) === 0) pieces.add(word[0]!.toUpperCase() + word.slice(1));
  }
  return pieces;
}

function vocabularyOf(pieces: ReadonlySet<string>): TokenVocabulary {
  const offsets = new Int32Array(pieces.size + 2);
  let id = 0;
  for (const piece of pieces) {
    offsets[id + 1] = offsets[id]! + piece.length;
    id++;
  }
  offsets[id + 1] = offsets[id]!;
  return { size: pieces.size + 1, bytes: Buffer.from([...pieces].join(""), "latin1"), offsets };
}
