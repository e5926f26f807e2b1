// A browser for the tests of a file. Every test fails if anything ran against the page's security policy, if the console
// shows an error that the test did not announce, or if the page asked another origin for anything.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { need, needing } from "../support/needs.ts";
import { findBrowser } from "./find-browser.ts";

const executable = findBrowser();

/** Longest wait for something to appear. Generous: the machine may be busy. */
const WAIT_MS = 300_000;

export interface OpenOptions {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
  /** Signed in with this key from the start. */
  key?: string;
}

export interface Bench {
  /** A page in a context of its own. `url` is complete. */
  open(url: string, options?: OpenOptions): Promise<Page>;
  /** Errors of the console that this test brings about. */
  announce(pattern: RegExp): void;
}

/** Tests that need a browser; skipped without one. */
export function inBrowser(name: string, tests: (bench: Bench) => void): void {
  needing(need("Chromium", executable !== null)).describe(name, () => {
    let browser: Browser;
    let contexts: BrowserContext[] = [];
    let problems: string[] = [];
    let announced: RegExp[] = [];
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: executable! });
    });
    afterAll(() => browser?.close());
    afterEach(async () => {
      const found = problems.filter((problem) => !announced.some((pattern) => pattern.test(problem)));
      await Promise.all(contexts.map((context) => context.close()));
      [contexts, problems, announced] = [[], [], []];
      expect(found).toEqual([]);
    });
    tests({
      announce: (pattern) => announced.push(pattern),
      open: async (url, { width = 1280, height = 800, theme = "light", key } = {}) => {
        const context = await browser.newContext({
          viewport: { width, height },
          colorScheme: theme,
          // Colours change at once, so axe never sees one half changed.
          reducedMotion: "reduce",
        });
        contexts.push(context);
        context.setDefaultTimeout(WAIT_MS);
        await context.addInitScript(REPORT_VIOLATIONS);
        if (key !== undefined) await context.addInitScript(keepKey(key));
        const page = await context.newPage();
        watch(page, new URL(url).origin, problems);
        await page.goto(url);
        return page;
      },
    });
  });
}

/** Runs in the page. */
const REPORT_VIOLATIONS = `document.addEventListener("securitypolicyviolation", (event) => {
  console.error("policy violated: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample);
});`;

/** Runs in the page, before its program. Only once: the page may have signed out since. */
function keepKey(key: string): string {
  return `if (sessionStorage.getItem("test.signed-in") === null) {
    sessionStorage.setItem("test.signed-in", "yes");
    sessionStorage.setItem("flywheel.key", ${JSON.stringify(key)});
  }`;
}

function watch(page: Page, origin: string, problems: string[]): void {
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !["data:", "blob:"].includes(url.protocol)) problems.push(`request to ${url.href}`);
  });
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
}

/** All findings of axe, as readable lines. */
export async function axeFindings(page: Page): Promise<string[]> {
  return (await findings(page)).map(({ line }) => line);
}

/** Those that are serious or critical. */
export async function seriousFindings(page: Page): Promise<string[]> {
  const found = await findings(page);
  return found.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ line }) => line);
}

async function findings(page: Page): Promise<{ impact: string; line: string }[]> {
  await page.evaluate(axe);
  const { violations } = await page.evaluate<AxeResult>("axe.run(document, { resultTypes: ['violations'] })");
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target, failureSummary }) => ({ impact, line: `${id} ${target.join(" ")}: ${failureSummary}` })),
  );
}

/** Pixels by which the page is wider than the window. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  ) as Promise<number>;
}
