import { expect, test } from "vitest";
import { vocabularyOf } from "../../../test/grammar/walk.ts";
import { LONGEST_TOKEN } from "../automaton/expression-compiler.ts";
import { TokenTrie } from "./token-trie.ts";

const first = 256; // after the single bytes
const trie = new TokenTrie(vocabularyOf(["ab", "abc", "abd", "b", "x".repeat(LONGEST_TOKEN + 1)]));

function tokensBetween(start: number, end: number): number[] {
  const mask = new Int32Array(16);
  trie.addTokens(mask, start, end);
  return Array.from({ length: 512 }, (_, id) => id).filter((id) => (mask[id >>> 5]! >>> (id & 31)) & 1);
}

test("a token is found by its bytes; of several, the smallest id comes first", () => {
  const spelled = (text: string) => trie.tokenSpelled(new TextEncoder().encode(text));
  expect(spelled("abc")).toBe(first + 1);
  expect(spelled("b")).toBe(0x62);
  expect(spelled("abx")).toBe(-1);
  expect(spelled("")).toBe(-1);
});

test("the tokens of a subtree are stored between its node and the next one", () => {
  let node = 1;
  while (trie.byte[node] !== 0x61) node = trie.skip[node]!;
  expect(tokensBetween(node, trie.skip[node]!)).toEqual([0x61, first, first + 1, first + 2]);
  expect(tokensBetween(node, node + 1)).toEqual([0x61]);
});

test("removing tokens undoes adding them", () => {
  const mask = new Int32Array(16);
  trie.addTokens(mask, 1, trie.nodeCount);
  trie.removeTokens(mask, 1, trie.nodeCount);
  expect(mask.every((word) => word === 0)).toBe(true);
});

test("tokens too long for any mask are left out", () => {
  expect(tokensBetween(1, trie.nodeCount)).not.toContain(first + 4);
});
