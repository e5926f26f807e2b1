import { expect, test } from "vitest";
import { createProgressBar, createProgressLines } from "./download-progress.ts";

function recorder(terminal: { columns: number }) {
  const written: string[] = [];
  return { ...terminal, written, write: (text: string) => written.push(text) };
}

test("a terminal sees one line per file, redrawn in place at most ten times a second", () => {
  const output = recorder({ columns: 100 });
  let time = 1000;
  const show = createProgressBar(output, () => time);
  show({ file: "model.safetensors", done: 500_000, total: 4_000_000 });
  time += 50;
  show({ file: "model.safetensors", done: 600_000, total: 4_000_000 });
  time += 950;
  show({ file: "model.safetensors", done: 2_000_000, total: 4_000_000 });
  show({ file: "model.safetensors", done: 4_000_000, total: 4_000_000 });
  expect(output.written).toEqual([
    "\r\x1b[2K[###---------------------] 500 kB/4.0 MB  model.safetensors",
    "\r\x1b[2K[############------------] 2.0 MB/4.0 MB  1.5 MB/s  model.safetensors",
    "\r\x1b[2K[########################] 4.0 MB/4.0 MB  3.5 MB/s  model.safetensors\n",
  ]);
});

test("a line never exceeds the width", () => {
  const output = recorder({ columns: 40 });
  createProgressBar(output)({ file: "x".repeat(200), done: 1, total: 2 });
  expect(output.written[0]!.replace("\r\x1b[2K", "").length).toBe(39);
});

test("a log gets a line per tenth of a file", () => {
  const lines: string[] = [];
  const show = createProgressLines(({ file, percent }) => lines.push(`${file} ${percent}`));
  for (const done of [0, 99, 100, 450, 455, 1000]) show({ file: "a", done, total: 1000 });
  show({ file: "empty", done: 0, total: 0 });
  expect(lines).toEqual(["a 0", "a 10", "a 40", "a 100", "empty 100"]);
});
