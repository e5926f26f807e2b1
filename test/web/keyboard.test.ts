// Everything a first-time user does, by the keyboard alone: the focus is never lost, and is where the next key belongs.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser } from "./browser.ts";
import { answers, groupOf, KEY, type LearningServer, startLearningServer } from "./learning-server.ts";

/** Runs in the page: what has the focus. */
const FOCUS = `(() => {
  const { activeElement: one } = document;
  return one === document.body ? "nothing" : (one.ariaLabel ?? (one.labels?.[0] ?? one).textContent).trim();
})()`;

const focus = (page: Page) => page.evaluate(FOCUS) as Promise<string>;
const focusIs = (page: Page, name: string) => expect.poll(() => focus(page)).toBe(name);

/** Presses Tab, or Shift and Tab, until it is there. */
async function goTo(page: Page, name: string | RegExp, key: "Tab" | "Shift+Tab"): Promise<void> {
  const passed: string[] = [];
  const isThere = (found: string) => (typeof name === "string" ? found === name : name.test(found));
  while (passed.length === 0 || !isThere(passed.at(-1)!)) {
    if (passed.length > 80) throw new Error(`${key} does not lead to ${name}, but to ${passed.join(", ")}`);
    await page.keyboard.press(key);
    passed.push(await focus(page));
  }
}

async function press(page: Page, name: string | RegExp, key: "Tab" | "Shift+Tab"): Promise<void> {
  await goTo(page, name, key);
  await page.keyboard.press("Enter");
}

async function say(page: Page, text: string): Promise<void> {
  await focusIs(page, "Message");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

const isIdle = (page: Page) => page.getByRole("button", { name: "Send", exact: true }).waitFor();

inBrowser("the keyboard in a chat", (bench) => {
  const server = shared(startTestServer);

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

inBrowser("the keyboard and training", (bench) => {
  const server = shared<LearningServer>(startLearningServer);

  it("teaches twice, compares the curves of two policies, finds a rollout by its text, and signs out", async () => {
    const { id } = await server.register("fish");
    const group = groupOf("Name a fish.", await answers(server.client, "fish", "Name a fish.", 4), [0, 1, 2, 3]);
    const [asked, choice] = group.trajectories[2]!.messages_and_choices;
    const message = { role: "assistant", content: "It says cod." };
    group.trajectories[2]!.messages_and_choices = [asked!, { ...choice!, message }];
    await server.client.train(id, [group]);

    const page = await bench.open(`${server.url}/?n=4&seed=1&temperature=1&max_tokens=6`, { key: KEY });
    await focusIs(page, "Message");
    await press(page, "Teach", "Shift+Tab");
    await goTo(page, "Message", "Tab");
    const teach = async (question: string, step: number) => {
      await say(page, question);
      await page.getByText(question, { exact: true }).first().waitFor();
      await isIdle(page);
      await press(page, "Move answer 2 up", "Shift+Tab");
      await focusIs(page, "Answer 2, place 1");
      await press(page, "Move answer 1 up", "Tab");
      await focusIs(page, "Answer 1, place 2");
      await press(page, "Train", "Tab");
      await page.getByText(`my-agent is at step ${step}. It answers beside step ${step - 1}`).waitFor();
      await isIdle(page);
      await focusIs(page, "Train");
    };
    await teach("hello", 1);
    await goTo(page, "Message", "Tab");
    await teach("good morning", 2);

    await goTo(page, "Message", "Tab");
    await page.keyboard.press("Escape");
    await page.keyboard.type("gp");
    // Tab goes past what is not there yet
    await page.getByRole("link", { name: "my-agent", exact: true }).first().waitFor();
    await press(page, "my-agent", "Tab");
    await goTo(page, /^beside/, "Tab");
    await page.keyboard.press("ArrowDown");
    await focusIs(page, "Take fish out of the charts");
    await press(page, "numbers of reward", "Tab");
    const numbers = page.getByRole("region", { name: "Numbers of reward" });
    await numbers.getByRole("columnheader", { name: /fish/ }).waitFor();

    await press(page, "Jobs", "Shift+Tab");
    await goTo(page, "filter", "Tab");
    await page.keyboard.type("fish");
    await page
      .getByRole("link", { name: /^[0-9a-f]{8}$/ })
      .first()
      .waitFor();
    await press(page, /^[0-9a-f]{8}$/, "Tab");
    await page.getByRole("region", { name: "Groups" }).waitFor();
    await page.keyboard.press("/");
    await focusIs(page, "Text in tasks and rollouts");
    await page.keyboard.type("COD");
    await page.getByRole("link", { name: "said in 1 rollout" }).waitFor();
    await press(page, "said in 1 rollout", "Tab");
    await page.getByRole("heading", { name: "rollout 3 of 4" }).waitFor();
    expect(await page.locator("mark").allTextContents()).toEqual(["cod"]);

    await press(page, "Sign out", "Shift+Tab");
    await focusIs(page, "Token");
  });
});
