// Conversations of the playground: the browser keeps them, the address and a list bring them back, files carry them, signing out
// forgets them.
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";

/** Runs in the page: whether a chat with a draft of this length is kept. */
const isKept = (length: number) => `new Promise((resolve) => {
  indexedDB.databases().then(([found]) => {
    if (found === undefined) return resolve(false);
    const opening = indexedDB.open(found.name);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("chats").objectStore("chats").getAll();
      reading.onsuccess = () => {
        opening.result.close();
        resolve(reading.result.some(({ draft }) => draft.length === ${length}));
      };
    };
  });
})`;

/** Runs in the page: whether some of an answer is kept. */
const HAS_WORDS = `new Promise((resolve) => {
  indexedDB.databases().then(([{ name }]) => {
    const opening = indexedDB.open(name);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("answers").objectStore("answers").getAll();
      reading.onsuccess = () => {
        opening.result.close();
        resolve(reading.result.some(({ replies }) => replies.some(({ content }) => content.length > 20)));
      };
    };
  });
})`;

inBrowser("conversations", (bench) => {
  const server = shared(startTestServer);
  const open = (query = "", options = {}) => bench.open(`${server.url}/${query}`, { key: API_KEY, ...options });
  const ask = async (page: Page, text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("article").first().waitFor();
    await expect.poll(() => page.getByRole("button", { name: "Stop" }).count()).toBe(0);
  };
  const chatOf = (page: Page) => new URL(page.url()).searchParams.get("chat");
  const turns = (page: Page) => page.locator(".turn .plain-text, article .markdown").allTextContents();

  it("come back by their address", async () => {
    const page = await open("?n=2");
    await ask(page, "say:The sea.");
    await expect.poll(() => chatOf(page)).toMatch(/^\w+$/);
    const first = page.url();
    await ask(page, "say:And deep.");
    expect(chatOf(page)).toBe(new URL(first).searchParams.get("chat"));
    await page.reload();
    await page.getByRole("article", { name: /^Answer 2 / }).waitFor();
    expect(await turns(page)).toEqual(["say:The sea.", "The sea.", "say:And deep.", "And deep.", "And deep."]);
    // It goes on as if nothing had happened.
    await ask(page, "say:And wide.");
    const said = ["say:The sea.", "The sea.", "say:And deep.", "And deep.", "say:And wide."];
    expect((await turns(page)).slice(0, 5)).toEqual(said);
    const kept = page.url();
    await page.getByRole("button", { name: "New chat" }).click();
    await expect.poll(() => page.url()).not.toBe(kept);
    await ask(page, "say:Another one.");
    await page.goBack();
    await page.getByText("And deep.", { exact: true }).waitFor();
    expect(page.url()).toBe(kept);
  });

  it("are carried in a file, and what is no conversation is refused", async () => {
    const page = await open("?m=fake&m=fake-alias&temperature=0.5");
    await ask(page, "say:The sea.");
    await expect.poll(() => chatOf(page)).not.toBeNull();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export" }).click(),
    ]);
    const file = await download.path();
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ object: "flywheel.chat" });
    const other = await open(`?chat=${chatOf(page)}`);
    await other.getByRole("alert").filter({ hasText: "This browser does not have the conversation" }).waitFor();
    await other.getByLabel("Import").setInputFiles(file);
    await expect.poll(() => other.getByRole("article").count()).toBe(2);
    await other.getByRole("button", { name: "Settings", exact: true }).click();
    expect(await other.getByLabel("temperature", { exact: true }).inputValue()).toBe("0.5");
    expect(chatOf(other)).not.toBe(chatOf(page));
    await other.reload();
    await expect.poll(() => other.getByRole("article").count()).toBe(2);
    await other.getByLabel("Import").setInputFiles({ name: "x.json", mimeType: "", buffer: Buffer.from("{}") });
    await other.getByText("The file is no conversation of this page.").waitFor();
    expect(await other.getByRole("article").count()).toBe(2);
  });

  it("keep what a file of an earlier version has", async () => {
    const page = await open();
    const entry = { token: "token_id:104", logprob: -0.25, bytes: [104], top_logprobs: [] };
    const reply = { content: "h", reasoning: "", toolCalls: [], tokens: [], entries: [entry], tokenIds: [104] };
    const exchange = {
      ...{ body: { model: "fake", messages: [{ role: "user", content: "newest" }] }, state: "done", error: null },
      ...{ model: "fake", promptIds: [1], cachedTokens: 0, startedAt: 0, firstAt: 0, lastAt: 1, events: [] },
      replies: [{ ...reply, finish: "stop", policyVersion: null, branch: null }],
    };
    const turns = [
      { role: "user", content: "older" },
      { role: "assistant", content: "old answer" },
    ];
    const columns = [{ model: "fake", turns, exchange, chosen: 0, sent: {} }];
    const file = { object: "flywheel.chat", at: 5, query: "view=tokens", columns };
    const buffer = Buffer.from(JSON.stringify(file));
    await page.getByLabel("Import").setInputFiles({ name: "x.json", mimeType: "", buffer });
    await page.getByText("old answer").waitFor();
    await expect.poll(() => page.getByRole("listbox").textContent()).toBe("h");
    // and what an earlier version kept in this browser
    await page.evaluate(`localStorage.setItem("flywheel.chat.abc", ${JSON.stringify(JSON.stringify(file))})`);
    await page.goto(`${server.url}/?chat=abc`);
    await page.getByText("old answer").waitFor();
    await expect.poll(() => page.evaluate("localStorage.getItem('flywheel.chat.abc')")).toBeNull();
  });

  it("are never dropped for another one", async () => {
    const page = await open("?max_tokens=600&n=4&top=5");
    await ask(page, "go on with the first");
    const first = page.url();
    for (let i = 0; i < 4; i++) {
      await page.getByRole("button", { name: "New chat" }).click();
      await expect.poll(() => page.locator("article").count()).toBe(0);
      await ask(page, `go on with ${i}`);
    }
    await expect.poll(() => page.getByRole("region", { name: "Chats" }).getByRole("link").count()).toBe(5);
    await page.goto(first);
    await page.locator(".turn").getByText("go on with the first").waitFor();
    await expect.poll(() => page.getByRole("article").count()).toBe(4);
  });

  it("are listed with titles, searched, named and deleted", async () => {
    const page = await open();
    for (const text of ["say:The blue sea.", "say:A red fish."]) {
      await page.getByRole("button", { name: "New chat" }).click();
      await ask(page, text);
    }
    const list = page.getByRole("region", { name: "Chats" });
    const titles = () => list.getByRole("link").allTextContents();
    await expect.poll(titles).toEqual(["say:A red fish.", "say:The blue sea."]);
    expect(await page.title()).toBe("say:A red fish. · Flywheel");
    await list.getByLabel("Search chats").fill("BLUE");
    await expect.poll(titles).toEqual(["say:The blue sea."]);
    await list.getByRole("link").click();
    await page.getByText("The blue sea.", { exact: true }).waitFor();
    await list.getByLabel("Search chats").fill("");
    await list.getByRole("button", { name: "rename" }).click();
    await page.keyboard.press("Control+A");
    await page.keyboard.type("Seas");
    await page.keyboard.press("Enter");
    await expect.poll(titles).toEqual(["say:A red fish.", "Seas"]);
    await list.getByRole("button", { name: "Delete this chat" }).click();
    await list.getByRole("button", { name: "Yes, delete" }).click();
    await expect.poll(titles).toEqual(["say:A red fish."]);
    await page.reload();
    await expect.poll(titles).toEqual(["say:A red fish."]);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole("button", { name: "Chats" }).click();
    await list.getByRole("link").click();
    await page.getByText("A red fish.", { exact: true }).waitFor();
    await expect.poll(() => list.isVisible()).toBe(false);
  });

  it("keep what is being written, and nothing of it is in the address", async () => {
    const page = await open();
    const long = "word ".repeat(8_000);
    await page.getByLabel("Message", { exact: true }).fill(long);
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    await page.getByLabel("System message").fill("Be brief. ".repeat(2_000));
    await expect.poll(() => chatOf(page)).not.toBeNull();
    expect(page.url().length).toBeLessThan(200);
    await expect.poll(() => page.evaluate(isKept(long.length))).toBe(true);
    await page.reload();
    await expect.poll(() => page.getByLabel("Message", { exact: true }).inputValue()).toBe(long);
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    await page.getByLabel("System message").fill(""); // it is more than the context holds
    await ask(page, "say:Done.");
    await page.getByText("Done.", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("Done.", { exact: true }).waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("");
  });

  it("have an answer as far as it came when the page is left, and no draft of what was asked", async () => {
    const page = await open("?max_tokens=1900");
    await page.getByLabel("Message", { exact: true }).fill("go on");
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await page.getByRole("article").textContent())?.length).toBeGreaterThan(100);
    await expect.poll(() => page.evaluate(HAS_WORDS)).toBe(true);
    await page.reload();
    await page.getByText("Stopped.").or(page.getByText("1,900 tokens")).waitFor();
    expect((await page.getByRole("article").textContent())!.length).toBeGreaterThan(20);
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("");
  });

  it("take what two tabs say in them", async () => {
    const page = await open();
    await ask(page, "say:One.");
    await expect.poll(() => chatOf(page)).not.toBeNull();
    const other = await page.context().newPage();
    await other.goto(server.url);
    await other.evaluate(`sessionStorage.setItem("flywheel.key", "${API_KEY}")`);
    await other.goto(page.url());
    await other.getByText("One.", { exact: true }).waitFor();
    await ask(page, "say:Two.");
    await other.getByText("Two.", { exact: true }).waitFor();
    await ask(other, "say:Three.");
    await page.getByText("Three.", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("Three.", { exact: true }).waitFor();
    const said = ["One.", "Two.", "Three."].flatMap((text) => [`say:${text}`, text]);
    await expect.poll(async () => (await turns(page)).slice(0, 6)).toEqual(said);
  });

  it("keep what two tabs ask at once as versions, and are gone in both when one deletes them", async () => {
    const page = await open();
    await ask(page, "say:One.");
    await expect.poll(() => chatOf(page)).not.toBeNull();
    const other = await page.context().newPage();
    await other.goto(server.url);
    await other.evaluate(`sessionStorage.setItem("flywheel.key", "${API_KEY}")`);
    await other.goto(page.url());
    await other.getByText("One.", { exact: true }).waitFor();
    await Promise.all([ask(page, "say:Two."), ask(other, "say:Zwei.")]);
    for (const [tab, own] of [
      [page, "Two."],
      [other, "Zwei."],
    ] as const) {
      await tab.getByText(/^version [12]\/2$/).waitFor();
      await tab.getByText(own, { exact: true }).waitFor();
    }
    await other.getByLabel("Message", { exact: true }).fill("half a sentence");
    await page.getByRole("button", { name: "Delete this chat" }).click();
    await page.getByRole("button", { name: "Yes, delete" }).click();
    await other.getByText("This chat was deleted in another tab.").waitFor();
    expect(await turns(other)).toEqual([]);
    expect(await other.getByLabel("Message", { exact: true }).inputValue()).toBe("half a sentence");
    await other.getByLabel("Message", { exact: true }).fill("half a sentence more");
    const titles = () => other.getByRole("region", { name: "Chats" }).getByRole("link").allTextContents();
    await expect.poll(titles).toEqual(["half a sentence more"]);
  });

  it("are gone after signing out, and the next token never sees them", async () => {
    const page = await open();
    await ask(page, "say:The sea.");
    await expect.poll(() => chatOf(page)).not.toBeNull();
    const kept = page.url();
    const databases = () => page.evaluate("indexedDB.databases().then((all) => all.map(({ name }) => name))");
    await expect.poll(databases).toHaveLength(1);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("This server wants a token.").waitFor();
    await expect.poll(databases).toEqual([]);
    const wish = { name: "other", scopes: ["inference"] };
    const { token } = await (await server.post("/v1/tokens", wish)).json();
    await page.getByLabel("Token", { exact: true }).fill(token);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New chat" }).waitFor();
    expect(await page.getByText("The sea.").count()).toBe(0);
    await page.goto(kept);
    await page.getByText("This browser does not have the conversation").waitFor();
    expect(await page.getByText("The sea.").count()).toBe(0);
  });

  it("are hidden when a token is revoked, and are back for its owner", async () => {
    bench.announce(/401/);
    const wish = { name: "brief", scopes: ["inference"] };
    const { id, token } = await (await server.post("/v1/tokens", wish)).json();
    const page = await bench.open(server.url, { key: token });
    await ask(page, "say:The sea.");
    await expect.poll(() => chatOf(page)).not.toBeNull();
    await fetch(`${server.url}/v1/tokens/${id}`, { method: "DELETE", headers: { authorization: `Bearer ${API_KEY}` } });
    await page.getByLabel("Message", { exact: true }).fill("say:More.");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Enter" }).waitFor();
    await page.getByLabel("Token", { exact: true }).fill(API_KEY);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "New chat" }).waitFor();
    expect(await page.getByText("The sea.").count()).toBe(0);
  });

  it.each(["light", "dark"] as const)("have readable tokens in the deepest colours, %s", async (theme) => {
    const page = await open("?view=tokens", { theme });
    await ask(page, "say:The sea and the sky.");
    await expect.poll(() => page.locator(".token").count()).toBeGreaterThan(5);
    await page.evaluate(`document.querySelectorAll(".token").forEach((token, i) => {
      token.style.setProperty("--share", "70%");
      token.style.setProperty("--tint", i % 2 === 0 ? "var(--heat)" : "var(--cold)");
      token.classList.toggle("special", i % 4 > 1);
    })`);
    expect(await seriousFindings(page)).toEqual([]);
  });
});
