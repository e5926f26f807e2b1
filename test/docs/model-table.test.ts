// The README's table of models: every family has a row, every fixture is in it, and the tests that its cells name run over
// every fixture.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { FAMILIES } from "../../src/model/families/registry.ts";
import { families, fixtureFolder } from "../reference/runner-driver.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const readme = readFileSync(join(ROOT, "README.md"), "utf8");
const section = /^## Models\n(.*?)^## /ms.exec(readme)![1]!;
const rows = section
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| family "))
  .map((line) => {
    const cells = line.slice(1, -1).split("|");
    const words = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
    return { types: words(cells[1]!), tests: cells.slice(2, 6).map((cell) => cell.trim()), fixtures: words(cells[6]!) };
  });

it("has a row for every model type that can be loaded", () => {
  const types = FAMILIES.flatMap(({ modelTypes }) => modelTypes);
  expect(rows.flatMap((row) => row.types).sort()).toEqual(types.toSorted());
});

it("has every fixture in the row of its family", () => {
  expect(rows.flatMap((row) => row.fixtures).sort()).toEqual([...families].sort());
  for (const { types, fixtures } of rows) {
    for (const fixture of fixtures) {
      const { family } = readModelConfig(fixtureFolder(fixture as (typeof families)[number]));
      expect(FAMILIES.find(({ name }) => name === family)!.modelTypes).toEqual(types);
    }
  }
});

it("names tests that run over every fixture", () => {
  const links = new Map([...section.matchAll(/^\[(\w+)\]: (\S+)$/gm)].map(([, name, path]) => [`[${name}]`, path!]));
  for (const { tests } of rows) {
    for (const test of tests) {
      expect(links.has(test), test).toBe(true);
      expect(readFileSync(join(ROOT, links.get(test)!), "utf8")).toContain("describe.each(families)");
    }
  }
});
