import { test } from "vitest";
import { judge, judgeTexts } from "../../../../test/grammar/judge.ts";

const quoted = (texts: readonly string[]): string[] => texts.map((text) => JSON.stringify(text));

test.each([
  [
    "duration",
    ["PT30M", "PT1H30M", "P1Y", "P1Y2M3DT4H5M6S", "P3W", "PT0S"],
    ["P1Y2D", "PT1H2S", "P", "PT", "P1D2H", "P1W2D"],
  ],
  [
    "email",
    ["a.very.long.local.part.here@Example.COM", `${"a".repeat(64)}@x.org`, "o'brien+tag@sub.example.co.uk"],
    ["@x.org", ".a@x.org", "a..b@x.org", `${"a".repeat(65)}@x.org`, "a@x", "a@-x.org"],
  ],
  [
    "uri",
    [
      "urn:isbn:0451450523",
      "mailto:me@example.org",
      "file:///etc/hosts",
      "https://Example.ORG:65000/a%20b?x=1#y",
      "http://u:p@h.org/",
      "ldap://[2001:db8::7]/c=GB",
      "tel:+1-816-555-1212",
    ],
    [
      "abc",
      "http:",
      "http://",
      "//x.org",
      "http://x.org:65536",
      "ht tp://x",
      "http://a b",
      "1http://x",
      "http://[::1",
      "http:abc",
    ],
  ],
  ["uri-reference", ["abc", "", "../a/b?c#d", "//x.org/y", "#frag", "http://x.org"], ["a b", "\\x", "1:x y", "%zz"]],
  ["iri", ["http://example.org/straße", "urn:x:é"], ["straße", "http://a b"]],
  ["uuid", ["123E4567-E89B-12D3-A456-426614174000"], ["123E4567-E89B-12D3-A456-42661417400G"]],
  [
    "ipv6",
    ["::", "::1", "2001:db8::1:2", "2001:DB8::A", "1:2:3:4:5:6:7:8", "::ffff:10.0.0.1", "1::"],
    ["1:2:3:4:5:6:7", "1::2::3", "12345::", "::10.0.0.256", ":1"],
  ],
  [
    "date-time",
    ["2024-02-29T23:59:59.123456789Z", "2024-01-01T00:00:00+23:59"],
    ["2023-02-29T00:00:00Z", "2024-01-01T24:00:00Z"],
  ],
  [
    "hostname",
    ["a-b.Example.org", "1.2", `${"a".repeat(63)}.org`],
    ["xn--bad", "ab--cd", "a_b", "-a", "a-", `${"a".repeat(64)}.org`, "a..b", ""],
  ],
  ["regex", ["^[a-z]+$", "a|b".replace("|", "."), "(?:ab|c)*\\d"], ["(", "[a", "*a"]],
  ["uri-template", ["http://x/{id}{?q,r*}"], ["{", "{a b}"]],
  ["relative-json-pointer", ["0", "1/a", "2#"], ["01", "a"]],
  ["json-pointer", ["", "/a~1b/0"], ["a", "/~2"]],
])("format %s follows its standard", (format, valid, invalid) => {
  judgeTexts({ type: "string", format }, quoted(valid), quoted(invalid));
});

test("an unknown format is ignored, as an annotation", () => {
  judge({ type: "string", format: "colour", maxLength: 3 }, { valid: ["", "abc"], invalid: ["abcd"] });
});

test("maxLength applies beside a format", () => {
  const schema = { type: "string", format: "uri", maxLength: 60 };
  judgeTexts(
    schema,
    ['"https://example.org/a/b?c=d"'],
    [JSON.stringify(`https://example.org/${"a".repeat(60)}`), '"abc"'],
  );
  judgeTexts({ type: "string", format: "email", maxLength: 254 }, ['"Jane.Doe@Example.org"'], ['"x"']);
});
