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

  it("nests lists, code and quotes", () => {
    expect(html("1. **a**:\n   - b\n   - c\n2. d\n   ```\n   x\n   ```\n\ntext")).toBe(
      '<ol start="1"><li><strong>a</strong>:<ul><li>b</li><li>c</li></ul></li><li>d<pre><code>x</code></pre></li></ol><p>text</p>',
    );
    expect(html("- a\n\n- b\nc")).toBe("<ul><li><p>a</p></li><li><p>b\nc</p></li></ul>");
    expect(html("3) a\n4) b\n\ntext\n\n    code")).toBe(
      '<ol start="3"><li>a</li><li>b</li></ol><p>text</p><pre><code>code</code></pre>',
    );
    expect(html("> a\nb\n> > c")).toBe("<blockquote><p>a\nb</p><blockquote><p>c</p></blockquote></blockquote>");
    expect(html("In\n1986. it rained")).toBe("<p>In\n1986. it rained</p>");
    expect(html("Sea\n---\nwide  \nand\\\ncold")).toBe("<h4>Sea</h4><p>wide  <br/>and<br/>cold</p>");
    expect(html("~~~\n*a*")).toBe("<pre><code>*a*</code></pre>"); // a fence that is not closed yet
  });

  it("tells emphasis from stars and underscores", () => {
    for (const [text, expected] of [
      ["**a *b* c**", "<strong>a <em>b</em> c</strong>"],
      ["***a***", "<em><strong>a</strong></em>"],
      ["*a**b*", "<em>a**b</em>"],
      ["some_long_name and _a_", "some_long_name and <em>a</em>"],
      ["5 * 6 * 7", "5 * 6 * 7"],
      ["**a", "**a"],
      ["\\*a\\* `*b*` ``c`d``", "*a* <code>*b*</code> <code>c`d</code>"],
    ]) {
      expect(html(text!)).toBe(`<p>${expected}</p>`);
    }
  });

  it("finds addresses by name and in sentences", () => {
    const linked = (text: string) => html(text).match(/href="[^"]*"/g);
    expect(linked("[a][1], [Sea] and [none]\n\n[1]: https://one.org/x\n[sea]: <https://two.org>")).toEqual([
      'href="https://one.org/x"',
      'href="https://two.org/"',
    ]);
    expect(linked("(see https://example.org/a_(b)). www.example.com!")).toEqual([
      'href="https://example.org/a_(b)"',
      'href="http://www.example.com/"',
    ]);
    expect(linked('[a](https://example.org/(x) "title") ahttps://no.org')).toEqual(['href="https://example.org/(x)"']);
  });

  it("keeps escaped bars in their cell, and fills short rows", () => {
    const rows = html("a | b\n--|--\n`x\\|y` | *z*\n1 |").match(/<tr>.*?<\/tr>/g);
    expect(rows).toEqual([
      "<tr><th>a</th><th>b</th></tr>",
      "<tr><td><code>x|y</code></td><td><em>z</em></td></tr>",
      "<tr><td>1</td><td></td></tr>",
    ]);
    expect(html("a | b\n--\nc")).not.toContain("<table");
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
      "*a ".repeat(20_000),
      `${"_a ".repeat(10_000)}${"a* ".repeat(10_000)}`,
      "*a_".repeat(20_000),
      "[a](b (".repeat(8_000),
      `[a](${" ".repeat(50_000)}`,
      `[a]: http://a\n\n${"[".repeat(29_000)}${"]".repeat(29_000)}`,
      "` `` ".repeat(12_000),
      "- a\n".repeat(15_000),
      `${"***".repeat(20_000)}a`,
      "\ud800 \u202e abc",
    ]) {
      const before = process.cpuUsage();
      expect(renderToString(h(Markdown, { text }))).toContain(text.trimEnd().at(-1));
      // CPU time in microseconds; the slowest of them takes a fifth of a second
      expect(process.cpuUsage(before).user).toBeLessThan(2e6);
    }
  });
});
