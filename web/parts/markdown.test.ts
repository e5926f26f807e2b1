import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { Markdown } from "./markdown.ts";

const html = (text: string) =>
  renderToString(h(Markdown, { text })).replace(/^<div class="markdown">(.*)<\/div>$/s, "$1");

describe("markdown", () => {
  it("becomes elements", () => {
    expect(html("# A *b*\n\nOne **two** `three` ~~four~~")).toBe(
      "<h3>A <em>b</em></h3><p>One <strong>two</strong> <code>three</code> <del>four</del></p>",
    );
    expect(html("1. a\n2. b\n\n> c\n\n---")).toBe(
      '<ol start="1"><li>a</li><li>b</li></ol><blockquote><p>c</p></blockquote><hr/>',
    );
    expect(html("- [x] done\n- [ ] open")).toBe("<ul><li>☑ done</li><li>☐ open</li></ul>");
    expect(html("```js\nif (a < b) {}\n```")).toBe("<pre><code>if (a &lt; b) {}</code></pre>");
    expect(html("| a | b |\n|---|---|\n| 1 | 2 |")).toContain("<thead><tr><th>a</th><th>b</th></tr></thead>");
    expect(html("a &lt;b&gt; &amp; c")).toBe("<p>a &lt;b> &amp; c</p>");
  });

  it("shows HTML as text", () => {
    for (const text of [
      "<img src=x onerror=alert(1)>",
      "a <script>alert(1)</script> b",
      "<svg onload=alert(1)>\n\nx",
    ]) {
      expect(html(text)).not.toMatch(/<(img|script|svg)/);
      expect(html(text)).toContain("&lt;");
    }
  });

  it("links to the web only, and says where", () => {
    expect(html("[sea](https://example.org/a?b=1)")).toBe(
      '<p><a href="https://example.org/a?b=1" target="_blank" rel="noopener noreferrer" title="https://example.org/a?b=1">sea' +
        '<span class="link-target"> ‹example.org›</span></a></p>',
    );
    for (const target of [
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "data:text/html,x",
      "vbscript:x",
      "/local",
      "//x.org",
    ]) {
      expect(html(`[x](${target})`)).not.toContain("<a");
      expect(html(`![x](${target})`)).not.toMatch(/<(a|img)/);
    }
    expect(html("![a cat](https://example.org/cat.png)")).toMatch(/^<p><a [^>]*>image: a cat/);
    expect(html("<https://example.org> and https://example.com")).toMatch(/example\.org.*example\.com/);
  });

  it("survives what no one would write", () => {
    for (const text of [
      "a".repeat(100_000),
      "[".repeat(5_000),
      ">".repeat(5_000),
      "*a ".repeat(5_000),
      "\ud800 \u202e abc",
    ]) {
      const before = performance.now();
      expect(renderToString(h(Markdown, { text }))).toContain(text.at(-1) === " " ? "a" : text.at(-1));
      expect(performance.now() - before).toBeLessThan(20_000);
    }
  });
});
