import { mkdtempSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { LineFile, LineFileWriter } from "./line-file.ts";

const folder = mkdtempSync(join(tmpdir(), "line-file-"));
let count = 0;

async function written(lines: readonly string[], rows: readonly string[]): Promise<string> {
  const path = join(folder, String(count++));
  const writer = await LineFileWriter.create(path, async () => {});
  for (const line of lines) await writer.line(line);
  for (const row of rows) await writer.row(row);
  await writer.finish();
  return path;
}

async function collected(texts: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const text of texts) all.push(text);
  return all;
}

it("returns any range of lines and rows, whatever their sizes", async () => {
  const text = fc.oneof(
    fc.json(),
    fc.integer({ min: 1, max: 200_000 }).map((n) => JSON.stringify("é".repeat(n))),
  );
  const texts = fc.array(text, { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(texts, texts, fc.nat(45), fc.nat(45), async (lines, rows, from, length) => {
      const file = (await LineFile.open(await written(lines, rows)))!;
      try {
        expect([file.lineCount, file.rowCount]).toEqual([lines.length, rows.length]);
        expect(await collected(file.lines(from, from + length))).toEqual(lines.slice(from, from + length));
        expect(await collected(file.rows(from, from + length))).toEqual(rows.slice(from, from + length));
      } finally {
        await file.close();
      }
    }),
    { numRuns: 40 },
  );
});

it("does not open a file that is missing or was cut off anywhere", async () => {
  const lines = Array.from({ length: 2000 }, (_, i) => JSON.stringify({ i, text: "x".repeat(i % 97) }));
  const path = await written(lines, ["1", "2"]);
  expect(await LineFile.open(join(folder, "none"))).toBeNull();
  for (const bytes of [5000, 100, 17, 15, 0]) {
    truncateSync(path, bytes);
    expect(await LineFile.open(path)).toBeNull();
  }
  writeFileSync(path, "something else that is longer than the end of a file");
  expect(await LineFile.open(path)).toBeNull();
});
