import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findBrowser } from "./find-browser.ts";

it("takes the browser that is named, else one on the path", () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-browser-"));
  const chromium = join(folder, "chromium");
  writeFileSync(chromium, "");
  expect(findBrowser({ FLYWHEEL_BROWSER: chromium })).toBe(chromium);
  expect(findBrowser({ PATH: `/nowhere:${folder}` })).toBe(chromium);
  expect(() => findBrowser({ FLYWHEEL_BROWSER: join(folder, "gone") })).toThrow("does not exist");
});
