// The table of models in docs/reference/models.md has every type that can be loaded, and the tests that check a family run over
// every family.

import { expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { FAMILIES } from "../../src/model/families/registry.ts";
import { families, fixtureFolder } from "../reference/runner-driver.ts";
import { read } from "./pages.ts";

it("has a row for every model type that can be loaded", () => {
  const [, section] = /^## Families\n(.*?)^## /ms.exec(read("docs/reference/models.md"))!;
  const rows = section!.split("\n").filter((line) => /^\| .*`/.test(line) && !line.startsWith("| family "));
  const types = rows.map((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, type]) => type!));
  expect(types.toSorted()).toEqual(FAMILIES.map(({ modelTypes }) => [...modelTypes]).toSorted());
});

it("has a fixture for every family", () => {
  const tested = families.map((fixture) => readModelConfig(fixtureFolder(fixture)).family);
  expect([...new Set(tested)].sort()).toEqual(FAMILIES.map(({ name }) => name).sort());
});

it.each(["fixtures", "rounded-logits", "gradients", "trainer", "batch-invariance"])(
  "test/reference/%s.test.ts runs over every fixture",
  (name) => {
    expect(read(`test/reference/${name}.test.ts`)).toContain("describe.each(families)");
  },
);
