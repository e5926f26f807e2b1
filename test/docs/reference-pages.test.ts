import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ERRORS, type ErrorRow } from "../../src/errors/error-table.ts";
import { REASONING_PARSERS } from "../../src/text/reasoning.ts";
import { TOOL_CALL_PARSERS } from "../../src/text/tools/tool-format.ts";
import { errorsPage, flagsPage, metricsPage } from "./reference-pages.ts";

it.each([
  ["errors", errorsPage],
  ["metrics", metricsPage],
  ["flags", flagsPage],
])("docs/reference/%s.md matches the code", (name, page) => {
  const file = new URL(`../../docs/reference/${name}.md`, import.meta.url);
  if (process.env.UPDATE_DOCS === "1") writeFileSync(file, page());
  expect(readFileSync(file, "utf8")).toBe(page());
});

it("docs/reference/reasoning-and-tools.md has every parser", () => {
  const page = readFileSync(new URL("../../docs/reference/reasoning-and-tools.md", import.meta.url), "utf8");
  const first = [...page.matchAll(/^\| (`[^|]*`)/gm)].flatMap(([, cell]) => cell!.match(/\w+/g)!);
  const all = [...REASONING_PARSERS, ...TOOL_CALL_PARSERS.filter((name) => name !== "auto")];
  expect(all.filter((name) => !first.includes(name))).toEqual([]);
});

it("every 429 and 503 says when to retry; quotas, conflicts of runs, cancellation, 500 and 501 say that a retry is useless", () => {
  for (const [code, { status, repeat }] of Object.entries(ERRORS as Record<string, ErrorRow>)) {
    const useless =
      ["quota_exceeded", "run_conflict", "request_cancelled"].includes(code) || status === 500 || status === 501;
    const expected = useless ? "useless" : [429, 503].includes(status) ? expect.any(Number) : undefined;
    expect(repeat, code).toEqual(expected);
  }
});
