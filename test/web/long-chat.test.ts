// A chat of 200 turns and 100,000 tokens: writing in it costs what writing in a short one does.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser } from "./browser.ts";
import { longChat, MOST_TURNS } from "./long-chat.ts";
import { longestTask } from "./tracing.ts";

inBrowser("a long chat", (bench) => {
  const server = shared(startTestServer);
  const openWith = async (turnCount: number) => {
    const page = await bench.open(server.url, { key: API_KEY });
    const buffer = Buffer.from(longChat(turnCount, "fake"));
    await page.getByLabel("Import").setInputFiles({ name: "chat.json", mimeType: "application/json", buffer });
    await page.getByText(`Answer ${turnCount - 1}`, { exact: true }).waitFor();
    return page;
  };
  /** Milliseconds of the longest task while 20 keys are pressed: the least of several tries. */
  const typing = async (page: Page) => {
    const box = page.getByLabel("Message", { exact: true });
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 4; i++) {
      await box.fill("");
      await box.focus();
      // not through a locator, which would look for its element in all of the page
      const task = await longestTask(page, () => page.keyboard.type("twenty keys are here", { delay: 5 }));
      least = Math.min(least, task);
    }
    return least;
  };

  it("is written in as fast as a short one", async () => {
    const short = await typing(await openWith(1));
    const page = await openWith(MOST_TURNS);
    expect(await page.locator(".round").count()).toBe(MOST_TURNS);
    const long = await typing(page);
    console.log(
      `longest task while typing: ${short.toFixed(1)} ms at one turn, ${long.toFixed(1)} ms at ${MOST_TURNS}`,
    );
    expect(long).toBeLessThanOrEqual(Math.max(2.5 * short, 5));
    // tokens of all turns, too
    await page.getByLabel("tokens", { exact: true }).check();
    await page.getByRole("listbox").last().waitFor();
    const withTokens = await typing(page);
    console.log(`with tokens: ${withTokens.toFixed(1)} ms`);
    expect(withTokens).toBeLessThanOrEqual(Math.max(2.5 * short, 5));
  });
});
