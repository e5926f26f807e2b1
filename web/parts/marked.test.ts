import { expect, it } from "vitest";
import { partsOf } from "./marked.tsx";

const found = (text: string, wanted: string) =>
  partsOf(text, wanted)
    .map(({ part, isFound }) => (isFound ? `[${part}]` : part))
    .join("");

it("finds a text in any case, wherever it stands", () => {
  expect(found("A cod. a COD.", "cod")).toBe("A [cod]. a [COD].");
  expect(found("cod", "COD")).toBe("[cod]");
  expect(found("a*b", "*")).toBe("a[*]b");
  expect(found("none", "x")).toBe("none");
  expect(found("İcod", "cod")).toBe("İcod");
});

it("loses nothing of a text with many", () => {
  const text = "a".repeat(5000);
  expect(
    partsOf(text, "a")
      .map(({ part }) => part)
      .join(""),
  ).toBe(text);
});
