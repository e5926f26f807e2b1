import { describe, expect, test } from "vitest";
import { acceptsText } from "../../../test/grammar/accepts.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, random, refusal, Walker } from "../../../test/grammar/walk.ts";

const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

const patterns = [
  "yes|no|maybe",
  "a*b+c?",
  "(ab|a)(c|bcd)(d*)",
  "\\d{4}-\\d{2}-\\d{2}",
  "[A-Za-z_][A-Za-z0-9_]{0,10}",
  "[^a-z\\n]{1,5}x",
  "(?:a|b){2,4}?c",
  "\\w+@\\w+\\.(com|org)",
  "[\\]\\-^a-c]+",
  "é+|[à-ü]{2}|\\u00df|\\x41",
  "(?<year>\\d\\d)(?<rest>\\D)",
  "\\p{Lu}\\p{Ll}{0,3}",
  "\\P{L}{1,3}",
  "\u{1f600}{2}|[\u{1f600}-\u{1f610}]",
  "^(abc|x)$",
  "(((a)*)*)*b",
  "(a?){30}a{5}",
  "[ab]*a[ab]{8}",
  "\\s\\S\\W",
  "[^\\s]{3}[^\\d]",
  "[\\s\\S]{2}",
  "(?!no)[a-z]{2,4}",
  "(?=.{3,5}$)[ab]*c?",
  "a(?=b|y)(?:b|c|y)(?!c)[a-e]",
  "(?:a(?!b)|x(?=yes))?[a-z]{1,3}",
  "(?!\\W)[^x]{1,3}",
  // A Decimal of pydantic, with and without a limit, and a duration of zod.
  "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$",
  "^(?!^[-+.]*$)[+-]?0*(?:\\d{0,3}|(?=[\\d.]{1,6}0*$)\\d{0,3}\\.\\d{0,2}0*$)",
  "^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$",
  // Anchors inside groups and repetitions, and word boundaries.
  "(a|^)b+",
  "a*(?:b|$)",
  "^([^,]|$)",
  "(?:a?^b|c$)*",
  "(\\/?((\\.{2})|([a-z0-9\\-]*))($|\\/))*",
  "a*$b*",
  "\\ba+\\b( a+)?",
  "[ab -]*\\b[ab -]*\\B[ab -]*",
  "\\B(?:-a|\\b)*",
  "(?!\\bab\\b)[ab ]{1,4}",
  "(?!a(?!b))[a-c]{1,3}",
  "(?!.*(?!b|$).)[ab]{0,2}|(?!(?=a(?!c))..)[a-c]{2,3}",
  "[^\\0]{1,2}\\0?",
  "",
];

describe.each(patterns)("%s", (pattern) => {
  const reference = new RegExp(`^(?:${pattern})$`, "u");
  const key = keyOf({ kind: "regex", pattern });

  test("generates only texts that match", () => {
    for (const walker of walkers) {
      for (let seed = 0; seed < 25; seed++) {
        const { text, finished } = walker.walk(key, seed, 30);
        expect(finished).toBe(true);
        expect(text).toMatch(reference);
      }
    }
  });

  test("accepts and rejects what JavaScript does", () => {
    const draw = random(7);
    const alphabet = Array.from("aabbccdxyz019-_@.é \nAßyesnomabe\u{1f600}]^");
    for (let i = 0; i < 400; i++) {
      const text = Array.from(
        { length: Math.floor(draw() * 8) },
        () => alphabet[Math.floor(draw() * alphabet.length)],
      ).join("");
      expect(acceptsText(key, text), JSON.stringify(text)).toBe(reference.test(text));
    }
  });
});

test("letters beyond ASCII count neither as part of a word nor as its boundary", () => {
  const accepts = (pattern: string, text: string) => acceptsText(keyOf({ kind: "regex", pattern }), text);
  expect(accepts("a\\b.", "a-")).toBe(true);
  expect(accepts("a\\b.", "aé")).toBe(false);
  expect(accepts("a\\B.", "aé")).toBe(false);
  expect(accepts("(?!a\\b)a.", "aé")).toBe(false);
});

test("a search with many alternatives stays small", () => {
  const words = Array.from({ length: 40 }, (_, index) => `word${index}x`);
  const key = keyOf({
    kind: "json_schema",
    schema: { type: "string", pattern: words.join("|"), maxLength: 30 },
    json: { compact: true, closedObjects: false, whitespacePattern: null },
  });
  expect(acceptsText(key, '"a word7x or word12x"')).toBe(true);
  expect(acceptsText(key, '"a word7 or word12"')).toBe(false);
});

test("inline flags apply to their group only", () => {
  const accepts = (pattern: string, text: string) => acceptsText(keyOf({ kind: "regex", pattern }), text);
  expect(accepts("(?i)straSSe[a-c]", "STRASSEB")).toBe(true);
  expect(accepts("a(?i:b)c", "aBc")).toBe(true);
  expect(accepts("a(?i:b)c", "aBC")).toBe(false);
  expect(accepts("a.b", "a\nb")).toBe(false);
  expect(accepts("(?s)a.b", "a\nb")).toBe(true);
  expect(accepts("(?i)[^k]", "K")).toBe(false);
});

test("an error says what is wrong and where", () => {
  const message = (pattern: string) => refusal({ kind: "regex", pattern });
  expect(message("a(b")).toBe("invalid regex: unclosed group, at position 1");
  expect(message("a)b")).toMatch(/unmatched \), at position 1/);
  expect(message("(?=a)b")).toMatch(/can never be satisfied/);
  expect(message("x(?:(?=a)a|b)*")).toMatch(/lookahead inside a repetition is not supported, at position 1/);
  expect(message("(?i)(?!a)[a-z]*")).toMatch(/a negative lookahead with the flag i is not supported, at position 4/);
  expect(message("(?!(?i:a))[a-z]*")).toMatch(/the flag i inside a negative lookahead is not supported, at position 3/);
  expect(message("(?=[ab]*a[ab]{20}$)[ab]*")).toMatch(/a regex with lookahead is too complex/);
  expect(refusal({ kind: "grammar", source: "start: /a(?=b)/ /b/" })).toMatch(/lookahead is not supported here/);
  expect(message("x(?<!a)b")).toMatch(/lookbehind is not supported, at position 1/);
  expect(message("(a)\\1")).toMatch(/back references are not supported, at position 3/);
  expect(message("a(?=b|$)\\bc")).toMatch(
    /word boundaries behind a lookahead in the middle are not supported, at position 1/,
  );
  expect(refusal({ kind: "grammar", source: "start: /a\\b/ /b/" })).toMatch(/word boundaries are not supported here/);
  expect(message("[z-a]")).toMatch(/wrong order, at position 1/);
  expect(message("[abc")).toMatch(/unclosed character class, at position 0/);
  expect(message("*a")).toMatch(/nothing to repeat before \*, at position 0/);
  expect(message("a{3,2}")).toMatch(/wrong order/);
  expect(message("a{100001}")).toMatch(/more than 100000/);
  expect(message("a**")).toMatch(/nothing to repeat/);
  expect(message("\\p{Nope}")).toMatch(/unknown Unicode property/);
  expect(message("\\q")).toMatch(/unknown escape/);
  expect(message("a$b")).toMatch(/can never be satisfied/);
  expect(message("[^\\s\\S]")).toMatch(/can never be satisfied/);
});
