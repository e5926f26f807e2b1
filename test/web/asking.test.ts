// What happens between a question and its answer: following it, stopping it, versions, columns, errors, and a server that goes.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { CuttingProxy } from "../support/cutting-proxy.ts";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser } from "./browser.ts";

inBrowser("asking", (bench) => {
  const server = shared(startTestServer);
  const open = (query = "", options = {}) => bench.open(`${server.url}/${query}`, { key: API_KEY, ...options });
  const box = (page: Page) => page.getByLabel("Message", { exact: true });
  const send = async (page: Page, text: string) => {
    await box(page).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const isIdle = (page: Page) => page.getByRole("button", { name: "Send", exact: true }).waitFor();
  const ask = async (page: Page, text: string) => {
    await send(page, text);
    await page.locator(".turn").getByText(text, { exact: true }).last().waitFor();
    await isIdle(page);
  };
  const answer = (page: Page, number = 1) => page.getByRole("article", { name: new RegExp(`^Answer ${number} `) });
  const openSettings = (page: Page) => page.getByRole("button", { name: "Settings", exact: true }).click();

  const SIZES = [
    { width: 1440, height: 900 },
    { width: 1280, height: 720 },
    { width: 390, height: 844 },
  ];

  it.each(SIZES)("keeps the newest answer in view at $width×$height, unless the reader scrolls up", async (size) => {
    const page = await open("", size);
    const isInView = async () => {
      const found = await answer(page).boundingBox();
      const composer = await box(page).boundingBox();
      return found !== null && found.y >= 0 && found.y + found.height <= composer!.y;
    };
    for (let i = 0; i < 12; i++) await ask(page, `say:Answer number ${i}.`);
    await expect.poll(isInView).toBe(true);
    const thread = page.getByRole("region", { name: "Conversation" });
    await thread.hover();
    await page.mouse.wheel(0, -300);
    await page.getByRole("button", { name: "To the end" }).waitFor();
    const scrolled = () => thread.evaluate((node) => node.scrollTop);
    await expect.poll(isInView).toBe(false);
    await page.getByRole("button", { name: "To the end" }).click();
    await expect.poll(isInView).toBe(true);
    // an answer that grows does not pull a reader down who has scrolled up
    await page.getByRole("button", { name: "New chat" }).click();
    await expect.poll(() => page.locator(".turn").count()).toBe(0);
    await page.setViewportSize({ width: size.width, height: 450 });
    await send(page, "go on");
    const room = () => thread.evaluate((node) => node.scrollHeight - node.clientHeight);
    await expect.poll(room).toBeGreaterThan(100);
    await thread.hover();
    await page.mouse.wheel(0, -4000);
    await page.getByRole("button", { name: "To the end" }).waitFor();
    const before = await scrolled();
    await isIdle(page);
    expect(await scrolled()).toBe(before);
  });

  it("takes settings of an address into the request, and by Escape stops many prompts, too", async () => {
    const page = await open("?max_tokens=7&min_tokens=3&temperature=0.5&m=fake&m=fake-alias&panel=many");
    const body = page.waitForRequest(/chat\/completions/);
    await page.getByLabel("prompts, one per line").fill("go on\nand on\n".repeat(200));
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    expect((await body).postDataJSON()).toMatchObject({ max_tokens: 7, min_tokens: 3, temperature: 0.5 });
    await page.getByText(/^\d+ of [1-9]\d* answered differently\.$/).waitFor();
    await page.getByRole("link", { name: "Policies" }).focus();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Compare", exact: true }).waitFor();
    await expect.poll(() => server.service.admission.active).toBe(0);
  });

  it("stops by Escape wherever the focus is, branches too", async () => {
    const page = await open("?max_tokens=1900&view=tokens");
    await send(page, "go on");
    await answer(page)
      .getByText(/^[1-9]\d* tokens?$/)
      .waitFor();
    await page.getByRole("link", { name: "Policies" }).focus();
    await page.keyboard.press("Escape");
    await page.getByText("Stopped.").waitFor();
    await isIdle(page);
    await expect.poll(() => server.service.admission.active).toBe(0);
    await page.getByRole("option").nth(1).hover();
    await page
      .getByRole("button", { name: /^Continue with/ })
      .first()
      .click();
    await page.getByRole("button", { name: "Stop" }).click();
    await isIdle(page);
    await answer(page, 2).waitFor();
    await expect.poll(() => server.service.admission.active).toBe(0);
  });

  it("keeps an edited question and a repeated answer as versions, and deletes a turn", async () => {
    const page = await open();
    await ask(page, "say:One.");
    await ask(page, "say:Two.");
    await box(page).fill("a draft");
    await page.getByRole("button", { name: "Edit" }).first().click();
    await expect.poll(() => box(page).inputValue()).toBe("say:One.");
    await box(page).fill("say:Uno.");
    await page.keyboard.press("Enter");
    await answer(page).getByText("Uno.").waitFor();
    await isIdle(page);
    expect(await box(page).inputValue()).toBe("a draft");
    expect(await page.getByText("Two.", { exact: true }).count()).toBe(0);
    await page.getByText("2/2").waitFor();
    await page.getByRole("button", { name: "Version before of the question" }).click();
    await page.getByText("Two.", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Next version of the question" }).click();
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.getByRole("button", { name: "Version before of the answer" }).waitFor();
    await isIdle(page);
    await page.getByRole("button", { name: "Version before of the question" }).click();
    await page.getByRole("button", { name: "Delete turn 1" }).click();
    await page.getByRole("button", { name: "Yes, delete" }).click();
    await expect.poll(() => page.locator(".turn .plain-text").allTextContents()).toEqual(["say:Two."]);
    await page.reload();
    await page.getByText("Two.", { exact: true }).waitFor();
    // what is left is what is sent
    const body = page.waitForRequest(/chat\/completions/);
    await send(page, "say:Three.");
    const { messages } = (await body).postDataJSON();
    expect(messages.map(({ content }: { content: string }) => content)).toEqual(["say:Two.", "Two.", "say:Three."]);
  });

  it("goes on elsewhere with a part of the conversation", async () => {
    const page = await open();
    await ask(page, "say:One.");
    await ask(page, "say:Two.");
    const first = page.url();
    await page.getByRole("button", { name: "Branch" }).first().click();
    await expect.poll(() => page.locator(".turn .plain-text").allTextContents()).toEqual(["say:One."]);
    expect(page.url()).not.toBe(first);
    await ask(page, "say:Three.");
    await page.goBack();
    await page.getByText("Two.", { exact: true }).waitFor();
    expect(await page.getByText("Three.", { exact: true }).count()).toBe(0);
  });

  it("says that differences are the model's only while that is true", async () => {
    const page = await open("?m=fake&m=fake-alias&n=2&seed=3&max_tokens=8");
    const claim = page.getByText("every difference is the model's");
    await ask(page, "go on");
    await claim.waitFor();
    await page.getByRole("article", { name: "Answer 2 of fake-alias" }).getByLabel("go on with this").check();
    await ask(page, "go on");
    await expect.poll(() => page.getByRole("article", { name: /^Answer 1 / }).count()).toBe(2);
    expect(await claim.count()).toBe(0); // the columns have other histories now
    await page.getByRole("button", { name: "New chat" }).click();
    await ask(page, "go on");
    await claim.waitFor();
    await page.getByLabel("coupled").uncheck();
    await page.getByRole("button", { name: "Regenerate" }).click();
    await expect.poll(() => claim.count()).toBe(0);
  });

  it("adds a column with another model, or none", async () => {
    bench.announce(/404/); // this server has no routes of training
    const page = await open();
    const names = () =>
      page.getByRole("button", { name: /^Model \d/ }).evaluateAll((all) => all.map((one) => one.getAttribute("title")));
    await page.getByRole("button", { name: "+ compare" }).click();
    await expect.poll(names).toEqual(["fake", "fake-alias"]);
    expect(await page.getByRole("button", { name: "+ compare" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Remove fake-alias" }).click();
    await expect.poll(names).toEqual(["fake"]);
    await page.getByRole("button", { name: "Model 1" }).click();
    await page.getByRole("dialog", { name: "Models" }).getByRole("button", { name: "fake-alias" }).click();
    await expect.poll(names).toEqual(["fake-alias"]);
    await page.getByRole("button", { name: "Model 1" }).click();
    await page.keyboard.type("my-agent@3");
    await page.keyboard.press("Enter");
    await expect.poll(names).toEqual(["my-agent@3"]);
  });

  it("keeps a message that more fields made impossible to send", async () => {
    const page = await open("?extra=%7B%22stop%22%3A");
    await send(page, "say:Hello.");
    await page.getByRole("alert").filter({ hasText: "More fields: This is not JSON" }).waitFor();
    expect(await box(page).inputValue()).toBe("say:Hello.");
    expect(await page.locator(".turn").count()).toBe(0);
  });

  it("keeps the text of every kind of output", async () => {
    const page = await open("?output=json");
    await openSettings(page);
    const schema = page.getByLabel("JSON schema", { exact: true }).last();
    await schema.fill('{"type": "integer"}');
    await page.getByLabel("regex").check();
    await page.getByLabel("JSON schema").check();
    expect(await schema.inputValue()).toBe('{"type": "integer"}');
  });

  it("keeps a question that failed, with its error in view, and asks it again", async () => {
    bench.announce(/400/);
    const page = await open("?temperature=9");
    for (const text of ["say:One.", "say:Two."]) await ask(page, text);
    const error = page.getByRole("alert").filter({ hasText: "temperature must be in [0, 2]" });
    await expect.poll(() => error.count()).toBe(2);
    await expect.poll(() => page.locator(".turn .plain-text").allTextContents()).toEqual(["say:One.", "say:Two."]);
    const { y, height } = (await error.last().boundingBox())!;
    expect(y + height).toBeLessThan((await box(page).boundingBox())!.y);
    await openSettings(page);
    await page.getByLabel("temperature", { exact: true }).fill("0");
    await page.getByRole("button", { name: "Try again" }).click();
    await answer(page).getByText("Two.").waitFor();
  });

  it("tells the speed of each answer, not of all", async () => {
    const page = await open("?n=2&top=0");
    const chunk = (index: number, text: string) =>
      `data: ${JSON.stringify({ choices: [{ index, delta: { content: text }, token_ids: [1, 2, 3, 4, 5, 6, 7, 8, 9] }] })}\n\n`;
    await page.route("**/v1/chat/completions", (route) =>
      route.fulfill({
        contentType: "text/event-stream",
        body: `${chunk(0, "a")}${chunk(1, "b")}${chunk(1, "c")}data: [DONE]\n\n`,
      }),
    );
    await ask(page, "hello");
    await answer(page, 1).getByText("9 tokens", { exact: true }).waitFor();
    await answer(page, 2).getByText("18 tokens", { exact: true }).waitFor();
    // all came at once: no speed is told, neither of one nor of all
    expect(await page.getByText("tokens/s").count()).toBe(0);
  });

  it("asks again by itself when the connection broke in an answer", async () => {
    bench.announce(/ERR_/);
    const proxy = await CuttingProxy.start(server.url);
    const page = await bench.open(`${proxy.url}/?seed=1&max_tokens=40&temperature=1`, { key: API_KEY });
    await ask(page, "go on");
    proxy.cutAfter = 5;
    await send(page, "go on");
    await expect.poll(() => proxy.cuts).toBeGreaterThan(0);
    proxy.cutAfter = null;
    await page.getByRole("button", { name: "Edit" }).first().waitFor();
    await isIdle(page);
    await answer(page).getByText("40 tokens", { exact: true }).waitFor();
    expect(await page.getByRole("alert").filter({ hasText: /./ }).count()).toBe(0);
    await proxy.close();
  });

  it("says how full the context is, and leaves out the oldest turns", async () => {
    bench.announce(/400/);
    const page = await open();
    for (let i = 0; i < 5; i++) await ask(page, `say:${"word ".repeat(35)}${i}`);
    await page.getByText("The context is nearly full.").waitFor();
    await send(page, `say:${"word ".repeat(40)}`);
    await page.getByText("The conversation no longer fits into the context.").waitFor();
    await page.getByRole("button", { name: "Leave out the oldest turns" }).click();
    await page.getByText("The turns above are not sent any more.").waitFor();
    await isIdle(page);
    await expect.poll(() => page.getByText("no longer fits").count()).toBe(0);
    await answer(page).getByText("word word").waitFor();
    const fill = Number(await page.getByRole("meter", { name: "Context" }).getAttribute("value"));
    expect(fill).toBeLessThan(1500);
  });

  it("does not ask with a token that may not", async () => {
    const { token } = await (await server.post("/v1/tokens", { name: "t", scopes: ["training"] })).json();
    const page = await bench.open(server.url, { key: token });
    await page.getByText('it lacks the scope "inference"').waitFor();
    await box(page).fill("hello");
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
  });
});
