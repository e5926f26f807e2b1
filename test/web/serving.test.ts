// The serving page in a browser: live numbers, requests one by one, and ending one.
import { expect, it } from "vitest";
import { shared } from "../wire/shared-server.ts";
import { API_KEY, startTestServer } from "../wire/test-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";

inBrowser("the serving page", (bench) => {
  const server = shared(() => startTestServer({ runner: { maxPositions: 250_000, numBlocks: 20_000 } }));

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

  it.each(["light", "dark"] as const)("has no serious finding of axe and no sideways scroll, %s", async (theme) => {
    const page = await bench.open(`${server.url}/serving`, { key: API_KEY, theme, width: 360 });
    await page.getByText("Tokens per second").waitFor();
    expect(await page.locator(".chart canvas").count()).toBe(4);
    expect(await seriousFindings(page)).toEqual([]);
    expect(await sidewaysScroll(page)).toBe(0);
  });
});
