import { expect, test } from "vitest";
import { vocabularyOf } from "../../../test/grammar/walk.ts";
import { CharacterSlices, SLICE_LENGTH } from "./character-slices.ts";
import { TokenTrie, tokenBytes } from "./token-trie.ts";
import { NON_ASCII, SET_WORDS } from "./trie-contents.ts";

const long = "ab".repeat(SLICE_LENGTH);
const vocabulary = vocabularyOf(["ab", "abc", "abca", "aé", "é中a", "ad", "d", "ab d", long, `${long}d`]);
const trie = new TokenTrie(vocabulary);
const slices = new CharacterSlices(trie);
const words = new Int32Array(SET_WORDS);
for (const entry of [...Buffer.from("abc"), NON_ASCII]) words[entry >> 5]! |= 1 << (entry & 31);
const set = slices.set(words);

/** The texts of the slice's tokens, and those at its exits and below. Halves of characters are not looked at. */
function contents(length: number): { inside: string[]; outside: string[] } {
  const { mask, exits } = slices.slice(set, length);
  const behind = new Int32Array(mask.length);
  for (const node of exits) trie.addTokens(behind, node, trie.skip[node]!);
  const held = (bits: Int32Array) =>
    every.filter(({ id }) => (bits[id >> 5]! >>> (id & 31)) & 1).map(({ text }) => text);
  return { inside: held(mask), outside: held(behind) };
}

const every = Array.from({ length: vocabulary.size }, (_, id) => ({
  id,
  text: Buffer.from(tokenBytes(vocabulary, id)).toString(),
})).filter(({ text }) => text !== "" && !text.includes("\ufffd"));
const texts = every.map(({ text }) => text);

const made = (text: string): boolean => /^[a-c\u0080-\uffff]+$/.test(text);
/** Its first characters are of the set, and more than the slice allows. */
const exceeds = (text: string, longest: number): boolean => text.length > longest && made(text.slice(0, longest + 1));

test.each([1, 2, 3, 4, SLICE_LENGTH])("a slice of length %s holds exactly the tokens of its characters", (longest) => {
  const { inside, outside } = contents(longest);
  expect(inside).toEqual(texts.filter((text) => made(text) && text.length <= longest));
  const leftOut = (text: string): boolean => longest < SLICE_LENGTH && exceeds(text, longest);
  expect(outside).toEqual(texts.filter((text) => !inside.includes(text) && !leftOut(text)));
});
