import { expect, it } from "vitest";
import { KeyMatcher, type Shortcut } from "./keys.ts";

const shortcut = (keys: string): Shortcut => ({ keys, what: keys, run: () => {} });
const BOUND = ["g p", "g s", "p", "?", "j"].map(shortcut);

it("finds single keys and pairs, and forgets the first of a pair after a while", () => {
  const matcher = new KeyMatcher();
  const press = (key: string, at: number) => matcher.press(key, at, BOUND)?.keys ?? null;
  expect(press("?", 0)).toBe("?");
  expect(press("g", 10)).toBe(null);
  expect(press("p", 20)).toBe("g p");
  expect(press("p", 30)).toBe("p");
  expect(press("g", 40)).toBe(null);
  expect(press("s", 5000)).toBe(null);
  expect(press("g", 6000)).toBe(null);
  expect(press("j", 6010)).toBe("j");
});

it("prefers what was bound last", () => {
  const newest = shortcut("j");
  expect(new KeyMatcher().press("j", 0, [...BOUND, newest])).toBe(newest);
});
