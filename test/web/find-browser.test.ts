import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findBrowser, tellIfMissing } from "./find-browser.ts";

it("takes the browser that is named, else one on the path", () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-browser-"));
  const chromium = join(folder, "chromium");
  writeFileSync(chromium, "");
  expect(findBrowser({ FLYWHEEL_BROWSER: chromium })).toBe(chromium);
  expect(findBrowser({ PATH: `/nowhere:${folder}` })).toBe(chromium);
  expect(() => findBrowser({ FLYWHEEL_BROWSER: join(folder, "gone") })).toThrow("does not exist");
});

it("says in one line that tests are skipped, or fails where a browser is demanded", () => {
  const lines: string[] = [];
  const tell = (line: string) => lines.push(line);
  tellIfMissing("/usr/bin/chromium", { FLYWHEEL_REQUIRE_BROWSER: "1" }, tell);
  tellIfMissing(null, {}, tell);
  expect(lines).toEqual([expect.stringContaining("browser tests are skipped")]);
  expect(() => tellIfMissing(null, { FLYWHEEL_REQUIRE_BROWSER: "1" }, tell)).toThrow("chromium-headless-shell");
});
