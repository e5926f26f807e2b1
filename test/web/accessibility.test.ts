// What everybody needs to use the page: axe finds nothing on any page in any state, the focus goes where the reader goes, nothing
// interrupts a screen reader, and the page works at 200 % and without motion.
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { FakeMcpServer } from "../support/mcp-server.ts";
import { shared } from "../support/shared-server.ts";
import { axeFindings, inBrowser, sidewaysScroll } from "./browser.ts";
import { KEY, type LearningServer, startLearningServer } from "./learning-server.ts";
import { addressOf, type Places, STATES } from "./states.ts";
import { tellStory } from "./stories.ts";

inBrowser("the page for everybody", (bench) => {
  const server = shared<LearningServer>(async () => {
    const tools = await FakeMcpServer.start();
    const started = await startLearningServer({ mcpServer: [`sea=${tools.url}`] });
    const close = async () => {
      await started.close();
      await tools.close();
    };
    return { ...started, close };
  });
  let places: Places;
  beforeAll(async () => {
    places = { url: server.url, ...(await tellStory(server.client)) };
  });

  it.each(STATES)("has nothing for axe to find, at 200 % too: $name", async (state) => {
    if (state.announced !== undefined) bench.announce(state.announced);
    const page = await bench.open(addressOf(state, places), state.isSignedOut ? {} : { key: KEY });
    await state.reach(page);
    // axe takes minutes for a hundred routes that are all made alike
    if (state.name === "docs")
      await page.evaluate(`document.querySelectorAll("section:nth-of-type(n + 7)").forEach((node) => node.remove())`);
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.evaluate(IN_A_HURRY)).toEqual([]);
    expect(await page.evaluate(MOVING)).toEqual([]);
    // a window of 1280 × 800 at 200 %
    await page.setViewportSize({ width: 640, height: 400 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await axeFindings(page)).toEqual([]);
  });

  const focused = (page: Page) =>
    page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id");
  const box = (page: Page) => page.evaluate("document.activeElement.labels?.[0]?.textContent ?? ''");

  it("moves the focus with the reader: to another page, into a new chat, and on signing in", async () => {
    const page = await bench.open(server.url);
    await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("INPUT");
    await page.keyboard.type(KEY);
    await page.keyboard.press("Enter");
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    await expect.poll(() => box(page)).toMatch(/Message/);
    await page.getByRole("link", { name: "Policies", exact: true }).click();
    await expect.poll(() => focused(page)).toBe("content");
    await page.getByRole("link", { name: "Serving", exact: true }).click();
    await expect.poll(() => focused(page)).toBe("content");
    await page.goBack();
    await expect.poll(() => focused(page)).toBe("content");
    await page.goto(server.url);
    await page.getByRole("button", { name: "New chat" }).first().click();
    await expect.poll(() => box(page)).toMatch(/Message/);
  });
});

/** Live regions that interrupt, but for errors. Runs in the page. */
const IN_A_HURRY = `[...document.querySelectorAll('[aria-live="assertive"]')].map((node) => node.outerHTML.slice(0, 200))`;

/** What moves although the reader asked for no motion. Runs in the page. */
const MOVING = `document.getAnimations().map((one) => one.animationName ?? one.transitionProperty ?? String(one))`;
