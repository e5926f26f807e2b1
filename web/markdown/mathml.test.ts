import { renderToString } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import { mathOf } from "./mathml.ts";

const markup = (tex: string, isDisplay = false) => {
  const made = mathOf(tex, isDisplay);
  return made === null ? null : renderToString(made);
};

describe("mathematics", () => {
  it("becomes MathML", () => {
    expect(markup("\\frac{a}{2}")).toMatch(/^<math><mfrac[^>]*><mi>a<\/mi><mn>2<\/mn><\/mfrac><\/math>$/);
    expect(markup("x", true)).toMatch(/^<math display="block"/);
    expect(markup("\\begin{aligned} a &= b \\\\ &= c \\end{aligned}", true)).toContain("<mtable");
    expect(markup("\\sum_{i=1}^{n} \\sqrt{x_i} \\le \\text{the sum}", true)).toContain("<msqrt>");
  });

  it("stays text if it cannot be read", () => {
    for (const tex of ["\\frac{a", "\\nosuchthing", "}", "{".repeat(3_000), "\\def\\a{\\a\\a}\\a"]) {
      expect([tex.slice(0, 20), markup(tex)]).toEqual([tex.slice(0, 20), null]);
    }
  });

  it("holds nothing but mathematics", () => {
    for (const tex of [
      "\\href{javascript:alert(1)}{a}",
      "\\includegraphics{https://example.org/a.png}",
      "\\url{https://example.org}",
      "\\style{position:fixed}{a}",
      "\\class{button}{a}",
      "\\id{app}{a}",
      "\\data{a=b}{c}",
    ]) {
      expect(markup(tex) ?? "").not.toMatch(/<(a|img|script|span)\b|href|src=|fixed|id=|data-|button/);
    }
    expect(markup("\\text{<img src=x>}")).toBe("<math><mtext>&lt;img\u00a0src=x></mtext></math>");
  });

  it("cannot cover the page", () => {
    const width = /width="?:?([\d.]+)em/.exec(markup("\\rule{9999em}{9999em}") ?? "");
    expect(Number(width?.[1] ?? 0)).toBeLessThanOrEqual(40);
  });
});
