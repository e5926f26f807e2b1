import { describe, expect, it } from "vitest";
import { PrefixIndex, promptBlocks } from "./prefix-index.ts";
import { busyTokens, type Candidate, choose, costOf, type OwnWork } from "./router.ts";

const candidate = (name: string, given: Partial<Candidate> = {}): Candidate => ({
  name,
  uncomputed: 1000,
  busy: 0,
  hasAdapter: true,
  ...given,
});
const own = (given: Partial<OwnWork> = {}): OwnWork => ({ choices: 0, uncomputed: 0, startedSince: () => 0, ...given });
const chosen = (candidates: Candidate[], key = 1) => choose(candidates, key)?.name;

describe("the choice of a replica", () => {
  it("takes the one with the least work, the request's own included", () => {
    expect(costOf(candidate("a", { uncomputed: 10, busy: 5, hasAdapter: false }))).toBe(10 + 5 + 2048);
    expect(chosen([candidate("a", { busy: 500 }), candidate("b")])).toBe("b");
    expect(chosen([candidate("a", { busy: 500, uncomputed: 200 }), candidate("b")])).toBe("a");
    expect(choose([], 1)).toBeNull();
  });

  it("loads an adapter elsewhere only when that saves more than it costs", () => {
    expect(chosen([candidate("a", { busy: 1600 }), candidate("b", { hasAdapter: false })])).toBe("a");
    expect(chosen([candidate("a", { busy: 3000 }), candidate("b", { hasAdapter: false })])).toBe("b");
  });

  it("tells equal replicas apart by the key, evenly and in the same way whatever their order", () => {
    const names = ["a", "b", "c"];
    const counts = new Map(names.map((name) => [name, 0]));
    for (let key = 0; key < 3000; key++) {
      const nearly = names.map((name, i) => candidate(name, { busy: i * 45 })); // within 10 %
      const name = chosen(nearly, key)!;
      expect(chosen(nearly.toReversed(), key)).toBe(name);
      counts.set(name, counts.get(name)! + 1);
    }
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it("moves only the keys of a replica that is gone", () => {
    const all = ["a", "b", "c"].map((name) => candidate(name));
    for (let key = 0; key < 300; key++) {
      const before = chosen(all, key);
      if (before !== "b") expect(chosen([all[0]!, all[2]!], key)).toBe(before);
    }
  });
});

describe("the load of a replica", () => {
  it("counts our own choices, or what it reported and what we started since, whichever is more", () => {
    expect(busyTokens(own({ choices: 3, uncomputed: 100 }), null)).toBe(100 + 3 * 64);
    expect(busyTokens(own({ choices: 3 }), { requests: 1, at: 0 })).toBe(3 * 64);
    expect(busyTokens(own({ choices: 3, startedSince: () => 2 }), { requests: 5, at: 0 })).toBe(7 * 64);
  });

  it("keeps two servers from crowding on the replica that was idle at the last report", () => {
    const totals = new Map([
      ["a", 10],
      ["b", 0],
    ]);
    const reports = new Map(totals);
    const servers = [0, 1].map(() => new Map([...totals.keys()].map((name) => [name, 0])));
    for (let request = 0; request < 30; request++) {
      for (const mine of servers) {
        const candidates = [...totals.keys()].map((name) => {
          const since = mine.get(name)!;
          const busy = busyTokens(own({ choices: since, startedSince: () => since }), {
            requests: reports.get(name)!,
            at: 0,
          });
          return candidate(name, { uncomputed: 10, busy });
        });
        const name = chosen(candidates, request)!;
        mine.set(name, mine.get(name)! + 1);
        totals.set(name, totals.get(name)! + 1);
      }
    }
    expect(Math.max(...totals.values()) / 35).toBeLessThan(1.3);
  });
});

describe("the prefix index", () => {
  const tokens = (length: number, from = 0) => Array.from({ length }, (_, i) => from + i);
  const chain = (ids: number[], root = "") => promptBlocks(root, ids, 4).chain;

  it("matches whole blocks from the beginning, under the same root", () => {
    const index = new PrefixIndex();
    index.add(chain(tokens(11)));
    expect(index.matched(chain(tokens(11)))).toBe(2);
    expect(index.matched(chain([...tokens(6), ...tokens(20, 90)]))).toBe(1);
    expect(index.matched(chain(tokens(11, 1)))).toBe(0);
    expect(index.matched(chain(tokens(11), "salt"))).toBe(0);
    index.clear();
    expect(index.matched(chain(tokens(11)))).toBe(0);
  });

  it("forgets what was used least recently, ends before beginnings", () => {
    const index = new PrefixIndex(6);
    index.add(chain(tokens(16)));
    index.add(chain(tokens(8, 500)));
    index.add(chain(tokens(4)));
    index.add(chain(tokens(8, 900)));
    expect(index.matched(chain(tokens(16)))).toBe(2);
    expect(index.matched(chain(tokens(8, 500)))).toBe(2);
    index.add(chain(tokens(40, 7000)));
    expect(index.matched(chain(tokens(40, 7000)))).toBe(6);
  });

  it("has no collisions among many blocks that differ in little", () => {
    const seen = new Set<number>();
    for (let i = 0; i < 300; i++) for (const hash of promptBlocks("", [i, ...tokens(500)], 1).chain) seen.add(hash);
    expect(seen.size).toBe(300 * 501);
  });
});
