import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { Markdown } from "./markdown.tsx";
import { Reader } from "./reader.ts";

/** Without what is the same everywhere: the direction of every block, and the frame of code. */
const html = (text: string) =>
  renderToString(h(Markdown, { text }))
    .replace(/^<div class="markdown">(.*)<\/div>$/s, "$1")
    .replaceAll(' dir="auto"', "")
    .replace(/<figure class="code".*?<\/figcaption>(.*?)<\/figure>/gs, "$1");

describe("markdown", () => {
  it("becomes elements", () => {
    expect(html("# A *b*\n\nOne **two** `three` ~~four~~")).toBe(
      "<h2>A <em>b</em></h2><p>One <strong>two</strong> <code>three</code> <del>four</del></p>",
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
    expect(html("Sea\n---\nwide  \nand\\\ncold")).toBe("<h2>Sea</h2><p>wide<br/>and<br/>cold</p>");
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
    // those that give the names are shown too
    const [one, two] = ['href="https://one.org/x"', 'href="https://two.org/"'];
    const named = "[a][1], [Sea] and [none]\n\n[1]: https://one.org/x\n[sea]: <https://two.org>";
    expect(linked(named)).toEqual([one, two, one, two]);
    expect(linked("(see https://example.org/a_(b)). www.example.com!")).toEqual([
      'href="https://example.org/a_(b)"',
      'href="http://www.example.com/"',
    ]);
    expect(linked('[a](https://example.org/(x) "title")')).toEqual(['href="https://example.org/(x)"']);
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

  it("loses nothing: neither what looks like the definition of a link, nor footnotes, nor HTML", () => {
    expect(html("[INFO]: started\n\n[WARN]: 3 left")).toBe("<p>[INFO]: started</p><p>[WARN]: 3 left</p>");
    expect(html("[INFO]: started\n[WARN]: over")).toBe("<p>[INFO]: started\n[WARN]: over</p>");
    expect(html('[Sea]: https://example.org "of water"')).toMatch(
      /^<p class="footnote">\[Sea\]: <a href="https:\/\/example.org\/".*<\/a> of water<\/p>$/,
    );
    expect(html("Deep[^1], not [^a-z].\n\n[^1]: 11 *km*\nat most\n[^b]: two\n\nEnd")).toBe(
      "<p>Deep<sup>1</sup>, not [^a-z].</p>" +
        '<p class="footnote"><sup>1</sup> 11 <em>km</em>\nat most</p><p class="footnote"><sup>b</sup> two</p><p>End</p>',
    );
    expect(html("<details>\n*a*\n</details>\n\n<!-- b -->\n\n| a |\n|-|\n| b<br>c |")).toMatch(
      /&lt;details>\n<em>a<\/em>\n&lt;\/details>.*&lt;!-- b -->.*<td>b<br\/>c<\/td>/s,
    );
  });

  it("finds mathematics, and no mathematics in prices", () => {
    const tex = (text: string) => [
      ...html(text).matchAll(/(<span class="display-math">)?<code class="tex">(.*?)<\/code>/gs),
    ];
    const found = (text: string) => tex(text).map(([, isDisplay, raw]) => (isDisplay ? `display ${raw}` : raw));
    expect(found("Let $x_1 + *y*$ and \\(a * b\\) be")).toEqual(["$x_1 + *y*$", "\\(a * b\\)"]);
    expect(found("So\n$$\na = b\n+ c\n$$\nand \\[d\\], $$e$$")).toEqual([
      "display $$\na = b\n+ c\n$$",
      "display \\[d\\]",
      "display $$e$$",
    ]);
    expect(found("```math\n\\frac12\n```")).toEqual(["display ```math\n\\frac12\n```"]);
    expect(found("$$\n\\begin{x}")).toEqual(["display $$\n\\begin{x}"]); // its end may come
    for (const text of [
      "$5 and $10",
      "$5-$10",
      "US$ 5 and 6$ or $ 7$",
      "`$a$`",
      "```\n$a$\n```",
      "$$ is money",
      "\\$a$",
    ]) {
      expect([text, found(text)]).toEqual([text, []]);
    }
  });

  it("gives every block its direction, and code the name of its language", () => {
    const page = renderToString(h(Markdown, { text: "# a\n\n- b\n\n> c\n\n|d|\n|-:|\n|e|\n\n```c++ x=1\nf\n```" }));
    for (const tag of ["h2", "ul", "li", "blockquote", "p", "th", "td"]) expect(page).toMatch(`<${tag} dir="auto"`);
    expect(page).toContain('<td dir="auto" class="align-right">e</td>');
    expect(page).toContain('<figure class="code" dir="ltr"><figcaption><span>C++</span><button');
  });

  it("survives what no one would write", () => {
    for (const text of HARD) {
      const before = process.cpuUsage();
      expect(shown(text).length).toBeGreaterThanOrEqual(1);
      // CPU time in microseconds; the slowest of them takes half a second
      expect([text.slice(0, 20), process.cpuUsage(before).user < 3e6]).toEqual([text.slice(0, 20), true]);
    }
  });
});

/** Reads to the end, as the page does in several goes. */
function shown(text: string): string {
  const reader = new Reader();
  for (;;) {
    const blocks = reader.read(text, false);
    if (reader.wait === null) return renderToString(h("div", {}, blocks));
  }
}

const HARD = [
  "a".repeat(100_000),
  "[".repeat(5_000),
  ">".repeat(5_000),
  "> ".repeat(5_000),
  `${"- ".repeat(5_000)}a`,
  "*a ".repeat(20_000),
  `${"_a ".repeat(10_000)}${"a* ".repeat(10_000)}`,
  "*a_".repeat(20_000),
  "a_".repeat(30_000),
  "**a".repeat(20_000),
  "[a](b (".repeat(8_000),
  `[a](${" ".repeat(50_000)}`,
  `[a]: http://a\n\n${"[".repeat(29_000)}${"]".repeat(29_000)}`,
  "` `` ".repeat(12_000),
  "- a\n".repeat(15_000),
  "[a]: b\n".repeat(8_000),
  "[^1]: ".repeat(8_000),
  "$a".repeat(30_000),
  "$$\n".repeat(20_000),
  "\\(".repeat(30_000),
  "![[]()".repeat(10_000),
  `${"a|".repeat(3_000)}\n${"-|".repeat(3_000)}\n${"b|\n".repeat(3_000)}`,
  `${"***".repeat(20_000)}a`,
  "\ud800 \u202e abc",
];
