import { expect, test } from "vitest";
import { vocabularyOf } from "../../../test/grammar/walk.ts";
import { TokenTrie } from "./token-trie.ts";
import { LINE_ENDS, NON_ASCII, NOT_TEXT, SET_WORDS, TrieContents } from "./trie-contents.ts";

const words = Array.from("abcdefghijklmnop", (letter) => `t${letter}`);
const trie = new TokenTrie(vocabularyOf([...words, "ta中é", "中a", "\u2026", "\u2029", "t\u2026"]));
const contents = new TrieContents(trie);

function nodeOf(bytes: Iterable<number>): number {
  let node = 0;
  for (const byte of bytes) {
    node++;
    while (trie.byte[node] !== byte) node = trie.skip[node]!;
  }
  return node;
}

test("a large subtree records the characters in it", () => {
  const id = contents.setBelow[nodeOf(Buffer.from("t"))]!;
  const entries = Array.from({ length: NOT_TEXT + 1 }, (_, entry) => entry).filter(
    (entry) => (contents.sets[id * SET_WORDS + (entry >> 5)]! >>> (entry & 31)) & 1,
  );
  expect(entries).toEqual([...Buffer.from("abcdefghijklmnop"), NON_ASCII]);
});

test("height counts characters, not bytes", () => {
  expect(contents.height[nodeOf(Buffer.from("ta"))]).toBe(2);
  expect(contents.height[nodeOf(Buffer.from("中").subarray(0, 1))]).toBe(1);
});

test("a first byte of a line end and of others counts as a line end's", () => {
  expect(contents.entry[nodeOf([0xe2])]).toBe(LINE_ENDS);
  expect(contents.entry[nodeOf([0x74, 0xe2])]).toBe(NON_ASCII);
});

test("a character ends at its last byte", () => {
  const bytes = Buffer.from("中");
  expect([1, 2, 3].map((length) => contents.boundary[nodeOf(bytes.subarray(0, length))])).toEqual([0, 0, 1]);
});

test("a byte that cannot begin a character is not text", () => {
  expect(contents.entry[nodeOf([0x80])]).toBe(NOT_TEXT);
  expect(contents.entry[nodeOf([0xff])]).toBe(NOT_TEXT);
});
