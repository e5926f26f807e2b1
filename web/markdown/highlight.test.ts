import { describe, expect, it } from "vitest";
import { runsOf } from "./highlight.ts";
import { isColourable, languageOf } from "./languages.ts";

describe("code", () => {
  it("has colours by its language", () => {
    expect(runsOf('if (a < 1) return "b"; // c', "js")).toEqual([
      ["if", "word"],
      [" (a < ", null],
      ["1", "number"],
      [") ", null],
      ["return", "word"],
      [" ", null],
      ['"b"', "text"],
      ["; ", null],
      ["// c", "comment"],
    ]);
  });

  it("keeps its text in every language, whatever it is", () => {
    const texts = [
      'def f(x):\n  """a"""\n',
      "<a b='c'>&amp;</a>",
      "SELECT 'a' -- b",
      "`$" + "{a}` /x/g {{{",
      "\ud800 \u202e",
    ];
    for (const name of [
      "py",
      "html",
      "sql",
      "ts",
      "md",
      "bash",
      "rs",
      "yaml",
      "diff",
      "docker",
      "c",
      "make",
      "regex",
    ]) {
      const { grammar } = languageOf(name);
      for (const text of texts) {
        const joined = runsOf(text, grammar!).map(([part]) => part);
        expect([name, joined.join("")]).toEqual([name, text]);
      }
    }
  });

  it("knows languages by many names, and keeps one it does not know", () => {
    expect(languageOf("python title=a.py")).toEqual({ name: "Python", grammar: "py" });
    expect(languageOf("{.TSX}")).toEqual({ name: "TypeScript", grammar: "ts" });
    expect(languageOf("")).toEqual({ name: "Text", grammar: null });
    expect(languageOf("brainstorm")).toEqual({ name: "brainstorm", grammar: null });
    expect(languageOf("constructor").grammar).toBe(null);
  });

  it("is left as it is where it is long, has a long line, or grows to some length", () => {
    const code = "x = 1\n".repeat(2_500);
    expect([isColourable(code, false), isColourable(code, true)]).toEqual([true, false]);
    expect(isColourable(`${code}x`, false)).toBe(false);
    expect(isColourable("1e".repeat(500), true)).toBe(true);
    expect(isColourable(`a\n1${"1e".repeat(500)}`, true)).toBe(false);
  });

  it("takes no long time for what no one would write", () => {
    for (const part of ['"', "'", "`", "/*", "<a ", "$" + "{", "\\", "f(", "{", '"""', "#", "a.", "1e", "<!--"]) {
      for (const grammar of ["ts", "py", "html", "md"]) {
        const line = `${part.repeat(1_000 / part.length)}\n`;
        const text = line.repeat(15_000 / line.length);
        expect(isColourable(text, false)).toBe(true);
        const before = process.cpuUsage();
        runsOf(text, grammar);
        // CPU time in microseconds
        expect([part, grammar, process.cpuUsage(before).user < 1e6]).toEqual([part, grammar, true]);
      }
    }
  });
});
