import { expect, test } from "vitest";
import { createProgressBar } from "./download-progress.ts";

function recorder(terminal: { isTTY: boolean; columns?: number }) {
  const written: string[] = [];
  return { ...terminal, written, write: (text: string) => written.push(text) };
}

test("a terminal sees one line per file, redrawn in place at most ten times a second", () => {
  const output = recorder({ isTTY: true, columns: 100 });
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
  const output = recorder({ isTTY: true, columns: 40 });
  createProgressBar(output)({ file: "x".repeat(200), done: 1, total: 2 });
  expect(output.written[0]!.replace("\r\x1b[2K", "").length).toBe(39);
});

test("a log gets one line per finished file", () => {
  const output = recorder({ isTTY: false });
  const show = createProgressBar(output);
  for (const done of [1, 20, 999]) show({ file: "config.json", done, total: 999 });
  show({ file: "empty", done: 0, total: 0 });
  expect(output.written).toEqual(["config.json 999 B\n", "empty 0 B\n"]);
});
