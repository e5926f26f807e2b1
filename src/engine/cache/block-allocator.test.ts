import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BlockAllocator } from "./block-allocator.ts";

const none = (): void => {};

describe("BlockAllocator", () => {
  it("prefers free blocks and evicts the least recently released cached one", () => {
    const evicted: number[] = [];
    const allocator = new BlockAllocator(3, (block) => evicted.push(block));
    const [a, b, c] = [allocator.take(1), allocator.take(1), allocator.take(1)];
    allocator.release(b, 1, true);
    allocator.release(a, 1, true);
    allocator.release(c, 1, false);
    expect(allocator.available).toBe(3);
    expect(allocator.take(2)).toBe(c);
    expect(evicted).toEqual([]);
    expect(allocator.take(2)).toBe(b);
    expect(allocator.take(2)).toBe(a);
    expect(evicted).toEqual([b, a]);
    expect(() => allocator.take(2)).toThrow("no block left");
  });

  it("refuses operations that would put a block in two places", () => {
    const allocator = new BlockAllocator(2, none);
    const block = allocator.take(1);
    expect(() => allocator.release(block, 2, false)).toThrow("not held by sequence 2");
    expect(() => allocator.adopt(block, 2)).toThrow("not cached");
    allocator.release(block, 1, true);
    expect(() => allocator.release(block, 1, true)).toThrow("not held");
    allocator.adopt(block, 2);
    expect(() => allocator.adopt(block, 3)).toThrow("not cached");
  });

  it("finds lost and doubly listed blocks", () => {
    const allocator = new BlockAllocator(2, none);
    const block = allocator.take(1);
    expect(() => allocator.checkIntegrity([])).toThrow(`block ${block} is nowhere`);
    expect(() => allocator.checkIntegrity([[2, Int32Array.of(block)]])).toThrow(`block ${block} is 1, not 2`);
    expect(() => allocator.checkIntegrity([[1, Int32Array.of(block, block)]])).toThrow("in two places");
    allocator.checkIntegrity([[1, Int32Array.of(block)]]);
  });

  it("keeps every block in exactly one state under any sequence of operations", () => {
    const operation = fc.record({
      kind: fc.constantFrom("take", "adopt", "free", "cache"),
      pick: fc.nat(),
      owner: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.array(operation, { maxLength: 80 }), (numBlocks, operations) => {
        const cached = new Set<number>();
        const held: [number, number][] = []; // [block, owner]
        const allocator = new BlockAllocator(numBlocks, (block) => expect(cached.delete(block)).toBe(true));
        for (const { kind, pick, owner } of operations) {
          if (kind === "take") {
            if (allocator.available > 0) held.push([allocator.take(owner), owner]);
          } else if (kind === "adopt") {
            const block = [...cached][pick % Math.max(1, cached.size)];
            if (block === undefined) continue;
            allocator.adopt(block, owner);
            cached.delete(block);
            held.push([block, owner]);
          } else if (held.length > 0) {
            const [[block, holder]] = held.splice(pick % held.length, 1) as [[number, number]];
            allocator.release(block, holder, kind === "cache");
            if (kind === "cache") cached.add(block);
          }
          allocator.checkIntegrity(
            [0, 1, 2, 3].map((o) => [
              o,
              Int32Array.from(
                held.filter((h) => h[1] === o),
                (h) => h[0],
              ),
            ]),
          );
          expect(allocator.held).toBe(held.length);
          for (const block of cached) expect(allocator.isCached(block)).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });
});
