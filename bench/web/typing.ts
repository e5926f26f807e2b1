// How long a key takes to be drawn in the box for the message, below a chat of one turn and of 200 with 100,000 tokens.
import type { Browser } from "playwright-core";
import { longChat, MOST_TURNS } from "../../test/web/long-chat.ts";
import { longestTask } from "../../test/web/tracing.ts";
import { openPage } from "./frames.ts";

const KEYS = "words to be drawn at once";

export interface Typing {
  turns: number;
  /** Milliseconds from each key to the end of the frame that shows it. */
  keys: number[];
  /** Milliseconds of processor time of the longest task meanwhile. */
  longestTask: number;
}

export async function typing(browser: Browser, url: string): Promise<Typing[]> {
  const found: Typing[] = [];
  for (const turns of [1, MOST_TURNS]) {
    const page = await openPage(browser, url);
    const buffer = Buffer.from(longChat(turns, "flywheel-mini"));
    await page.getByLabel("Import").setInputFiles({ name: "chat.json", mimeType: "application/json", buffer });
    await page.getByText(`Answer ${turns - 1}`, { exact: true }).waitFor();
    await page.getByLabel("Message", { exact: true }).focus();
    await page.evaluate(NOTE_KEYS);
    const longest = await longestTask(page, async () => {
      await page.keyboard.type(KEYS, { delay: 40 });
      while ((await page.evaluate("drawn.length")) !== KEYS.length) await page.waitForTimeout(50);
    });
    found.push({ turns, keys: (await page.evaluate("drawn")) as number[], longestTask: longest });
    await page.context().close();
  }
  return found;
}

/** Runs in the page. A message that is posted in a frame comes after it was drawn. */
const NOTE_KEYS = `{
  globalThis.drawn = [];
  addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => drawn.push(performance.now() - timeStamp);
    port2.postMessage(null);
  }), { capture: true });
}`;
