// The manual stays short, and each of its pages says first what it is for.

import { describe, expect, it } from "vitest";
import { pages, read } from "./pages.ts";

const manual = pages.filter((page) => page.startsWith("docs/"));
const others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

/** As `wc -w` counts them. */
function wordsOf(page: string): number {
  return read(page).split(/\s+/).filter(Boolean).length;
}

it.each(manual)("%s opens with what it is for, in two lines", (page) => {
  const [title, first] = read(page)
    .replace(/<!--.*?-->\n+/s, "")
    .split("\n\n") as [string, string];
  expect(title).toMatch(/^# .+$/);
  expect(first.split("\n").length, first).toBeLessThanOrEqual(2);
  expect(first).not.toMatch(/^(?:[|#*-]|```)/);
});

describe("words", () => {
  it("of the README are at most 700", () => {
    expect(wordsOf("README.md")).toBeLessThanOrEqual(700);
  });

  it("of all pages are at most 35,000", () => {
    const all = [...others, ...manual].map(wordsOf);
    expect(all.reduce((sum, words) => sum + words, 0)).toBeLessThanOrEqual(35_000);
  });
});
