// The guides of several servers name metrics and options that exist.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { flagName, OPTIONS } from "../../src/config/options.ts";

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
const guide = read("docs/guides/monitoring.md") + read("docs/guides/scale-out.md");

it("names metrics that the server has", () => {
  const names = [...guide.matchAll(/`((?:vllm|flywheel):\w+|(?:http|flywheel)_\w+)/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(8);
  const page = read("docs/reference/metrics.md");
  expect(names.filter((name) => !page.includes(`- \`${name}\``))).toEqual([]);
});

it("names options that the server has", () => {
  const inText = [...guide.matchAll(/`--([a-z-]+)/g)].map(([, flag]) => flag!);
  const inCommands = guide.match(/^bin\/flywheel .*$/gm)!.flatMap((line) => line.match(/(?<=--)[a-z-]+/g)!);
  const known = Object.keys(OPTIONS).map(flagName);
  expect([...inText, ...inCommands].filter((flag) => !known.includes(flag))).toEqual([]);
});
