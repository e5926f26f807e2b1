// Conversations of the playground: the address brings them back, files carry them, signing out forgets them.
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../wire/shared-server.ts";
import { API_KEY, startTestServer } from "../wire/test-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";

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
  const turns = (page: Page) => page.locator(".turn .plain-text, .turn .markdown").allTextContents();

  it("come back by their address", async () => {
    const page = await open("?n=2");
    await ask(page, "say:The sea.");
    await expect.poll(() => chatOf(page)).toMatch(/^\w+$/);
    const first = page.url();
    await ask(page, "say:And deep.");
    expect(chatOf(page)).toBe(new URL(first).searchParams.get("chat"));
    await page.reload();
    await page.getByRole("article", { name: /^Answer 2 / }).waitFor();
    expect(await turns(page)).toEqual(["say:The sea.", "The sea.", "say:And deep."]);
    // It goes on as if nothing had happened.
    await ask(page, "say:And wide.");
    expect(await turns(page)).toEqual(["say:The sea.", "The sea.", "say:And deep.", "And deep.", "say:And wide."]);
    const kept = page.url();
    await page.getByRole("button", { name: "New chat" }).click();
    await expect.poll(() => chatOf(page)).toBeNull();
    await ask(page, "say:Another one.");
    expect(chatOf(page)).not.toBe(new URL(kept).searchParams.get("chat"));
    await page.goto(kept);
    await page.getByText("And deep.", { exact: true }).waitFor();
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
    await expect.poll(() => new URL(other.url()).searchParams.get("temperature")).toBe("0.5");
    await other.reload();
    await expect.poll(() => other.getByRole("article").count()).toBe(2);
    await other.getByLabel("Import").setInputFiles({ name: "x.json", mimeType: "", buffer: Buffer.from("{}") });
    await other.getByText("The file is no conversation of this page.").waitFor();
    expect(await other.getByRole("article").count()).toBe(2);
  });

  it("are gone after signing out", async () => {
    const page = await open();
    await ask(page, "say:The sea.");
    await expect.poll(() => chatOf(page)).not.toBeNull();
    const keys = () => page.evaluate("Object.keys(localStorage).filter((key) => key.includes('chat')).length");
    expect(await keys()).toBe(1);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("This server wants a token.").waitFor();
    expect(await keys()).toBe(0);
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
