import { expect, it } from "vitest";
import { linesOf } from "./json.ts";

async function linesOfPieces(...pieces: string[]): Promise<string[]> {
  const found: string[] = [];
  for await (const line of linesOf(
    (async function* () {
      yield* pieces;
    })(),
  ))
    found.push(line);
  return found;
}

it.each([
  [["a\nb\n"], ["a", "b"]],
  [
    ["a", "b\n", "\nc"],
    ["ab", "", "c"],
  ],
  [["", "\n"], [""]],
  [[], []],
])("pieces %j are the lines %j", async (pieces, lines) => {
  expect(await linesOfPieces(...pieces)).toEqual(lines);
});

it("does not split lines at the separators that JSON allows in strings", async () => {
  const line = JSON.stringify({ content: "one\u2028two\u2029three\u0085four" });
  expect(await linesOfPieces(`${line}\n${line}`)).toEqual([line, line]);
});
