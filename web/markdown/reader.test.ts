import * as fc from "fast-check";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import * as lexer from "./lexer.ts";
import { Reader } from "./reader.ts";

const page = (blocks: ReturnType<Reader["read"]>) => renderToString(h("div", {}, blocks));

/** Never rests: time stands still. */
const eager = () => new Reader(() => 0);

function readAll(reader: Reader, text: string): string {
  for (;;) {
    const blocks = reader.read(text, false);
    if (reader.wait === null) return page(blocks);
  }
}

const LINES = [
  "text *of* an answer",
  "- item",
  "  - inner",
  "    more of it",
  "1. first",
  "> quote",
  "",
  "",
  "```js",
  "```",
  "| a | b |",
  "|---|---|",
  "| 1 | 2 |",
  "# Head",
  "===",
  "---",
  "$$",
  "a &= b \\\\",
  "+ c",
  "[^1]: note",
  "[INFO]: hello",
  "    code",
  "<div>",
  "Text\twith `code` and $x$",
];

describe("a text that grows", () => {
  it("is read as if it had come at once, wherever it was cut", () => {
    const pieces = fc.array(fc.constantFrom(...LINES), { maxLength: 30 });
    const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(pieces, cuts, (lines, steps) => {
        const text = lines.join("\n");
        const reader = eager();
        for (let end = 0, i = 0; end < text.length; i++) {
          end += steps[i % steps.length]!;
          reader.read(text.slice(0, end), true);
        }
        expect(readAll(reader, text)).toBe(readAll(eager(), text));
      }),
      { numRuns: 300 },
    );
  });

  it("costs its last blocks for each token, not all that came before", () => {
    const read = vi.spyOn(lexer, "tokensOf");
    const reader = eager();
    const paragraph = `${"word ".repeat(80)}\n\n`;
    const text = paragraph.repeat(1_000); // 400,000 characters
    for (let end = 0; end <= text.length; end += 500) reader.read(text.slice(0, end), true);
    const most = Math.max(...read.mock.calls.slice(10).map(([part]) => part.length));
    expect(read.mock.calls.length).toBeGreaterThan(700);
    expect(most).toBeLessThan(4 * paragraph.length);
    read.mockRestore();
  });

  it("rests after a long read, and says when to come back", () => {
    let time = 0;
    const reader = new Reader(() => time);
    const slow = vi.spyOn(lexer, "tokensOf").mockImplementation((text) => {
      time += 20;
      return [{ type: "paragraph", raw: text, text }];
    });
    reader.read("a", true);
    expect(reader.wait).toBe(null);
    time += 30;
    expect(page(reader.read("a b", true))).toContain(">a<");
    expect(reader.wait).toBe(150); // reading took 20 ms of 200
    expect(page(reader.read("a b", false))).toContain(">a b<"); // over: at once
    expect(reader.wait).toBe(null);
    slow.mockRestore();
  });

  it("draws no block again that did not change", () => {
    const reader = eager();
    const [first] = reader.read("# a\n\nb\n\nc\n\nd", true);
    const [again] = reader.read("# a\n\nb\n\nc\n\nd e", true);
    expect(again).toBe(first);
  });

  it("knows in the end the names of links that come last", () => {
    const text = `[sea]\n\n${"text\n\n".repeat(10)}[sea]: https://example.org`;
    const reader = eager();
    for (let end = 0; end <= text.length; end++) reader.read(text.slice(0, end), true);
    expect(readAll(reader, text)).toMatch(/^<div><p dir="auto"><a href="https:\/\/example.org\/"/);
  });

  it("begins anew with another text", () => {
    const reader = eager();
    reader.read("# one", false);
    expect(page(reader.read("two", false))).toBe('<div><p dir="auto">two</p></div>');
  });
});
