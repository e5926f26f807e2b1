// Prefixes that end inside a block. Whole blocks, and all of it under random traffic:
// test/property/engine-mixes.test.ts.

import { expect, it } from "vitest";
import { FakeRunner, uniformRow } from "../../../test/support/fake-runner.ts";
import { generateRequest } from "../../../test/support/requests.ts";
import { RequestState, type Sequence } from "../sequence.ts";
import { KvCache } from "./kv-cache.ts";

/** Blocks of two links of two tokens. */
function bench(numBlocks: number) {
  const runner = new FakeRunner({ row: uniformRow, positionsPerBlock: 4, numBlocks });
  const kv = new KvCache(runner, { prefixCaching: true, linkSize: 2 });
  let arrival = 0;
  /** Runs these tokens; the number of those that were found. */
  const start = async (...tokens: number[]): Promise<[Sequence, number]> => {
    const request = generateRequest(tokens);
    const parts = { handle: arrival, request, adapterSlot: 0, rank: 0, arrival: arrival++, submittedAt: 0 };
    const sequence = new RequestState(parts).leader;
    const found = kv.attach(sequence, Number.POSITIVE_INFINITY);
    const blocks = sequence.blocks.view(0, sequence.blocks.length);
    await runner.forward([
      { tokens: sequence.tokens.view(found, tokens.length), start: found, blocks, adapterSlot: 0, logits: "last" },
    ]);
    sequence.computed = tokens.length;
    kv.commit(sequence);
    return [sequence, found];
  };
  return { kv, runner, start };
}

it("takes over a block that ends where the prefix does", async () => {
  const { kv, runner, start } = bench(4);
  const [first] = await start(1, 2, 3, 4, 5, 6, 7);
  const blocks = [...first.blocks.view(0, 2)];
  kv.release(first);
  const [second, found] = await start(1, 2, 3, 4, 5, 6, 8);
  expect(found).toBe(6);
  expect([...second.blocks.view(0, 2)]).toEqual(blocks);
  expect(runner.copies).toBe(0);
  kv.checkIntegrity([second]);
});

it("evicts the end of a chain first: its beginning can be found without it", async () => {
  const { kv, start } = bench(6);
  const [first] = await start(1, 2, 3, 4, 5, 6, 7, 8);
  kv.release(first);
  // All 4 free blocks, and one of the 2 that are cached.
  const [other] = await start(...Array.from({ length: 20 }, (_, i) => 20 + i));
  kv.release(other);
  expect((await start(1, 2, 3, 4, 9))[1]).toBe(4);
});

it("copies a block whose later links others may want, cached or held", async () => {
  const { kv, runner, start } = bench(6);
  const [first] = await start(1, 2, 3, 4, 5);
  const [held, foundHeld] = await start(1, 2, 9);
  expect({ found: foundHeld, copies: runner.copies }).toEqual({ found: 2, copies: 1 });
  kv.release(first);
  const [cached, foundCached] = await start(1, 2, 8, 7);
  expect({ found: foundCached, copies: runner.copies }).toEqual({ found: 2, copies: 2 });
  kv.checkIntegrity([held, cached]);
  // What the first one left is still whole.
  const [again, foundAgain] = await start(1, 2, 3, 4, 6);
  expect(foundAgain).toBe(4);
  // A link is found in the block that first had it, the links before it with it.
  kv.release(cached);
  const [branch, foundBranch] = await start(1, 2, 8, 7, 6);
  expect(foundBranch).toBe(4);
  kv.checkIntegrity([held, again, branch]);
});

it("takes the only block there is, and forgets its links after the prefix", async () => {
  const { kv, runner, start } = bench(1);
  const [first] = await start(1, 2, 3, 4);
  kv.release(first);
  const [second, found] = await start(1, 2, 9);
  expect({ found, copies: runner.copies }).toEqual({ found: 2, copies: 0 });
  kv.checkIntegrity([second]);
  kv.release(second);
  const [third, foundThird] = await start(1, 2, 3, 4);
  expect(foundThird).toBe(2);
  kv.checkIntegrity([third]);
});

it("refuses links that do not fill a block", () => {
  const runner = new FakeRunner({ row: uniformRow, positionsPerBlock: 4 });
  expect(() => new KvCache(runner, { prefixCaching: true, linkSize: 3 })).toThrow("links of 3 tokens");
});
