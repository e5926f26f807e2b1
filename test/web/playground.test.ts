// The playground in a browser, on a fake model that says what it is told (test/support/test-server.ts).
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";

const HOSTILE = [
  "<img src=x onerror=\"console.error('ran')\"><script>console.error('ran')</script>",
  "[click](javascript:console.error%28'ran'%29) ![x](https://evil.example/pixel.png)",
  "x".repeat(100_000),
  "\u202eright to left\u202c \u05d0\u05d1\u05d2 \u0627\u0644\u0628\u062d\u0631",
];

inBrowser("the playground", (bench) => {
  const server = shared(() => startTestServer({ runner: { maxPositions: 250_000, numBlocks: 20_000 } }));

  const open = (query = "", options = {}) => bench.open(`${server.url}/${query}`, { key: API_KEY, ...options });
  const ask = async (page: Page, text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Send" }).click();
  };
  const openSettings = (page: Page) => page.getByRole("button", { name: "Settings", exact: true }).click();
  const answer = (page: Page, number = 1) => page.getByRole("article", { name: new RegExp(`^Answer ${number} `) });

  it("streams a reply as markdown, with its cost, and goes on with the conversation", async () => {
    const page = await open();
    await ask(page, "say:The **sea** is wide.");
    await answer(page).getByText("The sea is wide.").waitFor();
    expect(await answer(page).locator("strong").textContent()).toBe("sea");
    await answer(page).getByText("21 tokens").waitFor();
    await answer(page)
      .getByText(/first after/)
      .waitFor();
    await page.getByRole("status").filter({ hasText: "Answered" }).waitFor();
    await ask(page, "say:And deep.");
    await answer(page).getByText("And deep.").waitFor();
    await page.getByText("The sea is wide.", { exact: false }).waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("");
    expect(page.url()).not.toContain("deep");
  });

  it("shows the server's defaults and how full the context is, and copies an answer", async () => {
    const page = await open();
    await openSettings(page);
    const temperature = page.getByLabel("temperature", { exact: true });
    await expect.poll(() => temperature.getAttribute("placeholder")).toBe("1");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await ask(page, "say:**A fish.**");
    await answer(page).getByText("A fish.").waitFor();
    await page.getByText(/^\d+ of 250,000$/).waitFor();
    const fill = async () => Number(await page.getByRole("meter", { name: "Context" }).getAttribute("value"));
    await expect.poll(fill).toBeGreaterThan(10);
    const before = await fill();
    await page.getByRole("button", { name: "Copy answer 1" }).click();
    await page.getByText("copied").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("**A fish.**");
    await ask(page, "say:Another fish.");
    await expect.poll(fill).toBeGreaterThan(before);
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.getByRole("button", { name: "Copy answer 1" }).click();
    await page.getByText("not allowed").waitFor();
  });

  it("stops when told to", async () => {
    const page = await open("?max_tokens=200000");
    await ask(page, "go on");
    await answer(page)
      .getByText(/^[1-9]\d* tokens?$/)
      .waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped.").waitFor();
    await expect.poll(() => server.service.admission.active).toBe(0);
  });

  it("shows an error of the server, and one in the middle of a reply", async () => {
    bench.announce(/400/);
    const page = await open("?temperature=9");
    await ask(page, "hello");
    await page.getByRole("alert").filter({ hasText: "temperature must be in [0, 2]" }).waitFor();
    await page.route("**/v1/chat/completions", (route) =>
      route.fulfill({
        contentType: "text/event-stream",
        body: 'data: {"choices":[{"index":0,"delta":{"content":"The se"}}]}\n\ndata: {"error":{"message":"The engine is gone."}}\n\n',
      }),
    );
    await ask(page, "hello");
    await page.getByRole("alert").filter({ hasText: "The engine is gone." }).waitFor();
    await answer(page).getByText("The se").waitFor();
  });

  it("folds reasoning away from the answer", async () => {
    const page = await open("?top=0");
    const events = [{ reasoning: "Hm, the sea." }, { content: "Blue." }].map((delta) =>
      JSON.stringify({ choices: [{ index: 0, delta, token_ids: [1] }] }),
    );
    const body = [...events, "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }));
    await ask(page, "What colour?");
    await answer(page).getByText("Blue.").waitFor();
    expect(await answer(page).getByText("Hm, the sea.").isVisible()).toBe(false);
    await answer(page).getByText("Reasoning").click();
    expect(await answer(page).getByText("Hm, the sea.").isVisible()).toBe(true);
  });

  it.each(HOSTILE)("shows a hostile reply as text (%#)", async (text) => {
    const page = await open("?view=text&top=0");
    await page.route("**/v1/chat/completions", (route) => {
      const chunk = { choices: [{ index: 0, delta: { content: text }, token_ids: [1] }] };
      return route.fulfill({
        contentType: "text/event-stream",
        body: `data: ${JSON.stringify(chunk)}\n\ndata: {"choices":[{"index":0,"delta":{"content":"\\ud800 end"}}]}\n\ndata: [DONE]\n\n`,
      });
    });
    await ask(page, "hello");
    await answer(page).getByText("end").waitFor();
    expect(await answer(page).locator("img, script, a[href^='javascript']").count()).toBe(0);
    expect(await sidewaysScroll(page)).toBe(0);
    await page.getByLabel("raw JSON").check();
    await page.getByRole("heading", { name: "Reply, put together" }).waitFor();
    expect(await sidewaysScroll(page)).toBe(0);
  });

  it("tells about tokens by pointer and by keyboard, and goes on from an alternative", async () => {
    const page = await open("?view=tokens&seed=1&max_tokens=9");
    await ask(page, "say:wonderful");
    const tokens = page.getByRole("listbox", { name: /^Tokens of answer 1/ });
    await expect.poll(() => tokens.textContent()).toBe("wonderful");
    await tokens.getByRole("option").nth(2).hover();
    await page.getByText(/^n token 3, id 110, probability/).waitFor();
    await tokens.focus();
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    await page.getByText(/^d token 4, id 100, probability/).waitFor();
    await page
      .getByRole("button", { name: /^Continue with/ })
      .first()
      .click();
    await answer(page, 2).getByText("from 1, token 4").waitFor();
    const branch = page.getByRole("listbox", { name: /^Tokens of answer 2/ });
    await expect.poll(() => branch.textContent()).toMatch(/^won.erful$/s);
    await answer(page, 2).getByText("9 tokens", { exact: true }).waitFor();
  });

  it("keeps settings under a name, for other chats and after a reload", async () => {
    const page = await open("?temperature=0.25&n=3");
    await openSettings(page);
    await page.getByLabel("System message").fill("Be brief.");
    await page.getByLabel("Name of the preset").fill("brief");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByRole("button", { name: "brief", exact: true }).waitFor();
    await page.goto(`${server.url}/?temperature=1`);
    await openSettings(page);
    await page.getByRole("button", { name: "brief", exact: true }).click();
    expect(await page.getByLabel("System message").inputValue()).toBe("Be brief.");
    expect(await page.getByLabel("temperature", { exact: true }).inputValue()).toBe("0.25");
    const body = page.waitForRequest(/chat\/completions/);
    await ask(page, "say:Hello.");
    const { messages, n } = (await body).postDataJSON();
    expect([messages[0], n]).toEqual([{ role: "system", content: "Be brief." }, 3]);
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "brief", exact: true }).waitFor({ state: "detached" });
  });

  it("explains every number of the settings in a line", async () => {
    const page = await open();
    await openSettings(page);
    await page.getByLabel("temperature", { exact: true }).waitFor();
    const texts = (await page.evaluate(`[...document.querySelectorAll("#settings input[type=number]")].map(
      (field) => document.getElementById(field.getAttribute("aria-describedby"))?.textContent ?? "",
    )`)) as string[];
    expect(texts.length).toBeGreaterThan(10);
    expect(texts.filter((text) => text === "")).toEqual([]);
  });

  it("compares columns with the same seed and marks the first difference", async () => {
    const page = await open("?m=fake&m=fake-alias&seed=5&view=tokens&max_tokens=8");
    const bodies: { model: string; seed: number }[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) bodies.push(request.postDataJSON());
    });
    await ask(page, "go on");
    await page.getByText("same tokens").waitFor();
    expect(bodies.map(({ model, seed }) => [model, seed])).toEqual([
      ["fake", 5],
      ["fake-alias", 5],
    ]);
    await page.getByLabel("coupled").uncheck();
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.getByText(/first differs: \d/).waitFor();
    expect(await page.locator(".token.differs").count()).toBe(1);
  });

  it("reads as a screen reader would read it", async () => {
    const page = await open("?temperature=0");
    await ask(page, "say:**blue**");
    await page.getByText("9 tokens", { exact: true }).waitFor();
    const heard = await page.getByRole("region", { name: "fake" }).ariaSnapshot();
    expect(heard.replace(/9 tokens first .* cached/, "9 tokens …")).toMatchInlineSnapshot(`
      "- region "fake":
        - text: "You: say:**blue**"
        - button "Edit"
        - button "Delete turn 1": delete
        - article "Answer 1 of fake":
          - paragraph:
            - strong: blue
          - paragraph: 9 tokens …
          - button "Copy answer 1": copy
          - button "Replay"
          - status
          - button "Branch""
    `);
    expect(await page.getByRole("navigation", { name: "Pages" }).ariaSnapshot()).toContain('link "Play"');
  });

  it("samples several answers and counts them", async () => {
    const page = await open("?n=4&temperature=0");
    await ask(page, "say:blue");
    await page.getByText("1 different of 4").waitFor();
    expect(await page.getByRole("article").count()).toBe(4);
  });

  it("shows the error of a schema and of an expression at its place", async () => {
    bench.announce(/400/);
    const page = await open("?output=json");
    await openSettings(page);
    await page.getByLabel("JSON schema", { exact: true }).last().fill('{"type":\n  oops}');
    await page.getByText("Line 2, column 3: This is not JSON: expected a value.").waitFor();
    await page.getByLabel("regex").check();
    await page.getByLabel("regex", { exact: true }).last().fill("a(b");
    await ask(page, "hello");
    await page.getByText("Line 1, column 2: invalid regex: unclosed group, at position 1").waitFor();
    await page.getByLabel("regex", { exact: true }).last().fill("ab");
    await page.getByText("unclosed group").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Regenerate" }).click();
    await answer(page).getByText("ab", { exact: true }).waitFor();
  });

  it("tells what a constraint did at a token", async () => {
    const page = await open("?output=regex&constraint=a%5Bxy%5Db&view=tokens&colour=legal&seed=2");
    await ask(page, "go on");
    const tokens = page.getByRole("listbox", { name: /^Tokens of answer 1/ });
    await expect.poll(() => tokens.textContent()).toMatch(/^a[xy]b/);
    await tokens.getByRole("option").nth(0).hover();
    await page.getByText(/the constraint left only this token, .* of the model's probability/).waitFor();
    await tokens.getByRole("option").nth(1).hover();
    await page.getByText(/the constraint left 2 tokens/).waitFor();
  });

  it("shows the request, the same as programs, and the prompt with its ids", async () => {
    const page = await open("?view=raw&temperature=0");
    await ask(page, "say:hi");
    await page.getByRole("button", { name: "Python" }).click();
    await page.getByText("from openai import OpenAI").waitFor();
    expect(await page.locator("pre", { hasText: "from openai" }).textContent()).not.toContain(API_KEY);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel("prompt", { exact: true }).check();
    await page.getByText(/\d+ tokens, \d+ of them from the prefix cache/).waitFor();
    expect(await page.locator(".prompt-tokens li").count()).toBeGreaterThan(10);
  });

  it("scores a reply again and finds it identical", async () => {
    const page = await open("?max_tokens=12&seed=3");
    await ask(page, "go on");
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByText("identical ✓ 12/12").waitFor();
  });

  it("rates answers by drag, by keyboard, by buttons and with stars, and nothing before", async () => {
    const page = await open("?n=3&panel=teach&max_tokens=4&seed=1");
    await ask(page, "go on");
    const items = () =>
      page.locator(".rated li").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
    const item = (number: number) => page.getByRole("listitem", { name: `Answer ${number}, ` });
    const rewards = () => page.locator(".rated li > :last-child").allTextContents();
    await expect.poll(items).toEqual(["Answer 1, not rated", "Answer 2, not rated", "Answer 3, not rated"]);
    expect(await rewards()).toEqual(["–", "–", "–"]);
    expect(await page.getByRole("button", { name: "Train", exact: true }).isDisabled()).toBe(true);
    await item(3).dragTo(item(1));
    await expect.poll(items).toEqual(["Answer 3, place 1", "Answer 1, not rated", "Answer 2, not rated"]);
    await item(1).focus();
    await page.keyboard.press("Alt+ArrowUp");
    await page.keyboard.press("Alt+ArrowUp"); // the answer that was moved still has the focus
    await expect.poll(items).toEqual(["Answer 1, place 1", "Answer 3, place 2", "Answer 2, not rated"]);
    await page.getByText("1 of 3 are not rated and left out.").waitFor();
    await page.getByRole("button", { name: "Move answer 2 up" }).click();
    await expect.poll(rewards).toEqual(["1", "0.5", "0"]);
    await page.getByRole("button", { name: "Answer 3 is as good as the one above" }).click();
    await expect.poll(rewards).toEqual(["1", "1", "0"]);
    await page.getByLabel("with stars").check();
    await page.getByText("Rate the answers first.").waitFor();
    await page.getByRole("group", { name: "Stars for answer 2" }).locator("label").nth(4).click();
    await page.getByRole("group", { name: "Stars for answer 1" }).locator("label").nth(0).click();
    await expect.poll(rewards).toEqual(["0", "1", "–"]);
    expect(await seriousFindings(page)).toEqual([]);
    // another question begins without ratings
    await ask(page, "go on again");
    await expect.poll(rewards).toEqual(["–", "–", "–"]);
  });

  it("gives answers that are the same one rating", async () => {
    const page = await open("?n=4&panel=teach&temperature=0");
    await ask(page, "say:blue");
    await page.getByRole("listitem", { name: "Answer 1 and 2 and 3 and 4, not rated" }).waitFor();
    await page.getByRole("button", { name: "Move answer 1 up" }).click();
    await page.getByText("All answers are the same").waitFor();
    expect(await page.getByRole("button", { name: "Train", exact: true }).isDisabled()).toBe(true);
  });

  it("compares many prompts with the same seeds and pairs what is right", async () => {
    const page = await open("?m=fake&m=fake-alias&panel=many&temperature=0");
    await page.getByLabel("prompts, one per line").fill("say:blue\nsay:red\n\n");
    await page.getByLabel(/right if it contains/).fill("^blue");
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await page.getByText("0 of 2 answered differently.").waitFor();
    await page.getByText("Right: 1 by fake, 1 by fake-alias; only the first 0, only the second 0.").waitFor();
  });

  it("never writes an address with settings that another address replaces", async () => {
    const page = await open("?n=2");
    await openSettings(page);
    await page.getByLabel("n", { exact: true }).waitFor();
    await page.evaluate(`
      const replaced = (window.replaced = []);
      const replaceState = history.replaceState.bind(history);
      history.replaceState = (state, title, to) => (replaced.push(to), replaceState(state, title, to));
      history.pushState(null, "", "/?n=3");
      dispatchEvent(new PopStateEvent("popstate"));
    `);
    await expect.poll(() => page.getByLabel("n", { exact: true }).inputValue()).toBe("3");
    expect(page.url()).toMatch(/\/\?n=3$/);
    expect(await page.evaluate("window.replaced")).toEqual([]);
  });

  it.each(["light", "dark"] as const)("has no serious finding of axe and no sideways scroll, %s", async (theme) => {
    const page = await open("?m=fake&m=fake-alias&view=tokens&n=2&max_tokens=8&output=regex&constraint=%5Ba-z%5D%2B", {
      theme,
    });
    await ask(page, "go on");
    await page.getByRole("option").first().waitFor(); // an empty list has no token to tell about
    await page.getByRole("listbox").first().focus();
    await page.getByText(/token 1, id/).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 700 });
    expect(await sidewaysScroll(page)).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
  });
});
