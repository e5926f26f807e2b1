// A chat by the keyboard alone: the focus is never lost, and is where the next key belongs.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser } from "./browser.ts";

/** Runs in the page: what has the focus. */
const FOCUS = `(() => {
  const { activeElement: one } = document;
  return one === document.body ? "nothing" : (one.ariaLabel ?? (one.labels?.[0] ?? one).textContent).trim();
})()`;

inBrowser("the keyboard", (bench) => {
  const server = shared(startTestServer);
  const focus = (page: Page) => page.evaluate(FOCUS) as Promise<string>;
  const focusIs = (page: Page, name: string) => expect.poll(() => focus(page)).toBe(name);
  /** Presses Tab, or Shift and Tab, until it is there. */
  const goTo = async (page: Page, name: string, key: "Tab" | "Shift+Tab") => {
    const passed: string[] = [];
    while (passed.at(-1) !== name) {
      if (passed.length > 80) throw new Error(`${key} does not lead to ${name}, but to ${passed.join(", ")}`);
      await page.keyboard.press(key);
      passed.push(await focus(page));
    }
  };
  const say = async (page: Page, text: string) => {
    await focusIs(page, "Message");
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
  };
  const isIdle = (page: Page) => page.getByRole("button", { name: "Send", exact: true }).waitFor();

  it("asks, stops, edits, goes through versions, deletes, and signs out", async () => {
    const page = await bench.open(`${server.url}/?max_tokens=1900`, { key: API_KEY });
    await say(page, "go on");
    await page
      .getByText(/^[1-9]\d* tokens?$/)
      .first()
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("Stopped.").waitFor();
    await isIdle(page);
    await focusIs(page, "Message");
    await goTo(page, "Edit", "Shift+Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "Message");
    await page.keyboard.press("Control+A");
    await say(page, "go on again");
    await goTo(page, "Stop", "Tab");
    await page.keyboard.press("Enter");
    await isIdle(page);
    await focusIs(page, "Message");
    await goTo(page, "Version before of the question", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByText("1/2").waitFor();
    await focusIs(page, "Version before of the question");
    await page.keyboard.press("Enter"); // there is none
    await goTo(page, "Delete turn 1", "Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "No");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "Message");
    await expect.poll(() => page.locator(".turn .plain-text").allTextContents()).toEqual(["go on again"]);
    await goTo(page, "New chat", "Shift+Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".turn").count()).toBe(0);
    await focusIs(page, "Message");
    await goTo(page, "Sign out", "Shift+Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "Token");
    expect(new URL(page.url()).search).toBe(""); // the chat of the address is gone
  });

  it("uses a tool", async () => {
    const page = await bench.open(server.url, { key: API_KEY });
    await focusIs(page, "Message");
    await goTo(page, "Settings", "Shift+Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "Settings"); // the drawer
    await goTo(page, "Tools", "Tab");
    await page.keyboard.press("Enter");
    await goTo(page, "calculate", "Tab");
    await page.keyboard.press("Enter");
    await page.getByLabel("Offer calculate").waitFor();
    await focusIs(page, "calculate");
    await page.keyboard.press("Escape");
    await page.getByLabel("Offer calculate").waitFor({ state: "detached" });
    await focusIs(page, "Settings"); // the button
    await goTo(page, "Message", "Tab");
    await say(page, 'say:<tool_call>{"name": "calculate", "arguments": {"expression": "1+1"}}</tool_call>');
    await page.getByRole("button", { name: "Give the result" }).waitFor();
    await goTo(page, "Result of calculate", "Shift+Tab");
    await page.keyboard.type("say:It is 2.");
    await goTo(page, "Give the result", "Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("article").getByText("It is 2.", { exact: true }).waitFor();
  });

  it("chooses a model and opens the chats on a phone", async () => {
    bench.announce(/404/); // this server has no routes of training
    const page = await bench.open(server.url, { key: API_KEY, width: 390 });
    await focusIs(page, "Message");
    await goTo(page, "Model 1: fake", "Shift+Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "Find or name a model");
    await page.keyboard.type("alias");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await focusIs(page, "Model 1: fake-alias");
    await goTo(page, "Chats", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByLabel("Search chats").waitFor();
    await goTo(page, "Search chats", "Shift+Tab");
    await page.keyboard.press("Escape");
    await page.getByLabel("Search chats").waitFor({ state: "hidden" });
    await focusIs(page, "Chats");
  });
});
