import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cacheRoot, chainDigest, PrefixCache } from "./prefix-cache.ts";

const block = (...tokens: number[]): Int32Array => Int32Array.from(tokens);

describe("cacheRoot", () => {
  it("differs for every pair of adapter version and salt", () => {
    const values = [null, "", "a", "b", '","', "null"];
    const roots = values.flatMap((adapter) => values.map((salt) => cacheRoot(adapter, salt)));
    expect(new Set(roots).size).toBe(values.length ** 2);
  });
});

describe("PrefixCache", () => {
  it("finds a block only after the same chain", () => {
    const cache = new PrefixCache();
    const root = cacheRoot(null, null);
    const first = chainDigest(root, block(1, 2));
    cache.remember(first, root, block(1, 2), 7, 0);
    cache.remember(chainDigest(first, block(3, 4)), first, block(3, 4), 8, 0);
    expect(cache.lookup(root, block(1, 2))).toEqual({ digest: first, block: 7 });
    expect(cache.lookup(first, block(3, 4)).block).toBe(8);
    expect(cache.lookup(root, block(3, 4)).block).toBeNull();
    expect(cache.lookup(cacheRoot(null, "salt"), block(1, 2)).block).toBeNull();
    expect(cache.lookup(cacheRoot("adapter", null), block(1, 2)).block).toBeNull();
    cache.checkIntegrity();
  });

  it("never serves other tokens, even if a digest collided", () => {
    const cache = new PrefixCache();
    const root = cacheRoot(null, null);
    // File other content under the digest of [5, 6], as a collision would.
    cache.remember(chainDigest(root, block(5, 6)), root, block(1, 2), 3, 0);
    expect(cache.lookup(root, block(5, 6)).block).toBeNull();
    expect(() => cache.checkIntegrity()).toThrow("wrong digest");
    // And the same content after another chain.
    cache.remember(chainDigest(root, block(7, 8)), cacheRoot(null, "salt"), block(7, 8), 4, 0);
    expect(cache.lookup(root, block(7, 8)).block).toBeNull();
  });

  it("keeps the first block of a content and forgets on eviction", () => {
    const cache = new PrefixCache();
    const root = cacheRoot(null, null);
    const digest = chainDigest(root, block(1, 2));
    cache.remember(digest, root, block(1, 2), 4, 0);
    cache.remember(digest, root, block(1, 2), 5, 0);
    expect(cache.holds(4)).toBe(true);
    expect(cache.holds(5)).toBe(false);
    expect(() => cache.remember(chainDigest(root, block(9, 9)), root, block(9, 9), 4, 0)).toThrow("already has");
    cache.forget(4);
    expect(cache.lookup(root, block(1, 2)).block).toBeNull();
    expect(cache.size).toBe(0);
    expect(() => cache.forget(4)).toThrow("no cached content");
  });

  it("holds several links in a block, and forgets those from a given place on", () => {
    const cache = new PrefixCache();
    const root = cacheRoot(null, null);
    const first = chainDigest(root, block(1, 2));
    const second = chainDigest(first, block(3, 4));
    cache.remember(first, root, block(1, 2), 4, 0);
    cache.remember(second, first, block(3, 4), 4, 1);
    expect(cache.lookup(first, block(3, 4)).block).toBe(4);
    expect([0, 1, 2].map((from) => cache.holds(4, from))).toEqual([true, true, false]);
    cache.checkIntegrity();
    cache.forget(4, 1);
    expect(cache.lookup(first, block(3, 4)).block).toBeNull();
    expect(cache.lookup(root, block(1, 2)).block).toBe(4);
    expect(cache.holds(4, 1)).toBe(false);
    cache.checkIntegrity();
    cache.remember(second, first, block(3, 4), 5, 1);
    cache.forget(4);
    expect(cache.holds(4)).toBe(false);
    expect(cache.holds(5)).toBe(true);
    cache.checkIntegrity();
  });

  it("copies the tokens it is given", () => {
    const cache = new PrefixCache();
    const root = cacheRoot(null, null);
    const tokens = block(1, 2);
    cache.remember(chainDigest(root, tokens), root, tokens, 0, 0);
    tokens[0] = 99;
    expect(cache.lookup(root, block(1, 2)).block).toBe(0);
    cache.checkIntegrity();
  });

  it("digests equal iff the chains are equal", () => {
    const chain = fc.array(fc.tuple(fc.nat(2), fc.nat(2)), { maxLength: 4 });
    const digestOf = (blocks: [number, number][]): string =>
      blocks.reduce((parent, tokens) => chainDigest(parent, block(...tokens)), cacheRoot(null, null));
    fc.assert(
      fc.property(chain, chain, (a, b) => {
        expect(digestOf(a) === digestOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });
});
