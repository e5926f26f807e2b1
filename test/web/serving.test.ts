// The serving page in a browser: live numbers, requests one by one, and ending one.
import type { Request } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";

inBrowser("the serving page", (bench) => {
  const server = shared(() =>
    startTestServer({ config: { logLevel: "info" }, runner: { maxPositions: 250_000, numBlocks: 20_000 } }),
  );

  it("shows a request while it runs, ends it, and keeps its trace on the tape", async () => {
    const running = server.post("/v1/chat/completions", {
      messages: [{ role: "user", content: "go on" }],
      max_tokens: 200_000,
    });
    const page = await bench.open(`${server.url}/serving`, { key: API_KEY });
    const row = page.getByRole("row").filter({ hasText: "decoding" });
    await row.waitFor();
    await page.getByText(/d1 d1/).waitFor();
    await row.getByRole("button", { name: "cancel" }).click();
    await row.waitFor({ state: "detached" });
    await running;
    await expect.poll(() => server.service.admission.active).toBe(0);
  });

  it("follows the log for admins, from a level, until it is paused", async () => {
    const page = await bench.open(`${server.url}/serving`, { key: API_KEY });
    await page.getByText("Log of the server").click();
    const lines = page.getByRole("list", { name: "Lines of the log" });
    await lines.getByText(/ info starting/).waitFor();
    server.service.log.warn("a warning", { path: "<b>x</b>" });
    await lines.getByText(/ warn a warning path=<b>x<\/b>/).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel("from level").selectOption("warn");
    await expect.poll(() => lines.getByText(/ info /).count()).toBe(0);
    const isLog = (request: Request) => request.url().endsWith("/v1/logs");
    await Promise.all([page.waitForEvent("requestfailed", isLog), page.getByRole("button", { name: "Pause" }).click()]);
    server.service.log.error("while nobody looks");
    expect(await lines.getByText("while nobody looks").count()).toBe(0);
    await page.getByRole("button", { name: "Follow" }).click();
    await lines.getByText("while nobody looks").waitFor();
    await expect.poll(() => lines.getByText("a warning").count()).toBe(1);
  });

  it("lets go of its stream while the tab is in the background", async () => {
    const page = await bench.open(`${server.url}/serving`, { key: API_KEY });
    await expect.poll(() => page.locator(".chart canvas").count()).toBe(4);
    const isStream = (request: Request) => request.headers().accept === "text/event-stream";
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));`);
    const [ended] = await Promise.all([page.waitForEvent("requestfailed", isStream), hide(true)]);
    expect(ended.failure()!.errorText).toBe("net::ERR_ABORTED");
    await Promise.all([page.waitForRequest(isStream), hide(false)]);
    expect(await page.getByText("does not answer").count()).toBe(0);
  });

  it("shows the log to nobody else", async () => {
    const { token } = await (await server.post("/v1/tokens", { name: "guest", scopes: ["inference"] })).json();
    const page = await bench.open(`${server.url}/serving`, { key: token });
    await page.getByText("Tokens per second").waitFor();
    await page.getByText("Steps of the last 10 seconds").waitFor();
    expect(await page.getByText("Log of the server").count()).toBe(0);
  });
});
