// Finds a Chromium for the tests of the page. No npm package carries one for every processor, so it must be installed:
// apt-get install --no-install-recommends chromium-headless-shell. Without it those tests are skipped, which is said once;
// FLYWHEEL_REQUIRE_BROWSER=1 makes that an error.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const COMMANDS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const ELSEWHERE = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe",
];

/** The path of a browser; null if there is none. FLYWHEEL_BROWSER names one. */
export function findBrowser(env: NodeJS.ProcessEnv = process.env): string | null {
  const named = env.FLYWHEEL_BROWSER;
  if (named) {
    if (!existsSync(named)) throw new Error(`FLYWHEEL_BROWSER names ${named}, which does not exist`);
    return named;
  }
  const folders = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const onPath = COMMANDS.flatMap((command) => folders.map((folder) => join(folder, command)));
  return [...onPath, ...ELSEWHERE].find((file) => existsSync(file)) ?? null;
}

/** Says that tests will be skipped, or throws if they must not be. */
export function tellIfMissing(found: string | null, env: NodeJS.ProcessEnv, tell: (line: string) => void): void {
  if (found !== null) return;
  if (env.FLYWHEEL_REQUIRE_BROWSER === "1") {
    throw new Error("no browser: apt-get install --no-install-recommends chromium-headless-shell");
  }
  tell("browser tests are skipped: no Chromium; FLYWHEEL_REQUIRE_BROWSER=1 makes this an error");
}

/** Runs once before all tests. */
export function setup(): void {
  tellIfMissing(findBrowser(), process.env, console.log);
}
