import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorsPage, flagsPage, metricsPage } from "./reference-pages.ts";

it.each([
  ["errors", errorsPage],
  ["metrics", metricsPage],
  ["flags", flagsPage],
])("docs/reference/%s.md is what the code says", (name, page) => {
  const file = new URL(`../../docs/reference/${name}.md`, import.meta.url);
  if (process.env.UPDATE_DOCS === "1") {
    writeFileSync(file, page());
  }
  expect(readFileSync(file, "utf8")).toBe(page());
});
