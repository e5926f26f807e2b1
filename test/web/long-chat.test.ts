// A chat of 200 turns and 100,000 tokens: writing in it costs what writing in a short one does.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { toFile } from "../../web/playground/chat-file.ts";
import type { Kept } from "../../web/playground/chat-record.ts";
import { emptyReply, startExchange } from "../../web/playground/reply.ts";
import type { Message } from "../../web/playground/request.ts";
import { DEFAULTS } from "../../web/playground/settings.ts";
import { TokenList } from "../../web/playground/token-list.ts";
import type { Place, Turn } from "../../web/playground/tree.ts";
import { shared } from "../wire/shared-server.ts";
import { API_KEY, startTestServer } from "../wire/test-server.ts";
import { inBrowser } from "./browser.ts";
import { longestTask } from "./tracing.ts";

const TURNS = 200;
const TOKENS_PER_TURN = 500;

function chatOf(turnCount: number): string {
  const turns = new Map<string, Turn>();
  const picks: Record<string, string> = {};
  const said: Message[] = [];
  let after: Place | null = null;
  for (let i = 0; i < turnCount; i++) {
    const question: Message = { role: "user", content: `Question ${i}` };
    said.push(question);
    const tokens = new TokenList();
    const alternatives = (at: number) =>
      Array.from({ length: 5 }, (_, j) => ({
        token: `token_id:${(at * 7 + j) % 900}`,
        logprob: -1 - j,
        bytes: [97 + j, 32],
      }));
    for (let at = 0; at < TOKENS_PER_TURN; at++) {
      tokens.add({ token: `token_id:${at % 900}`, logprob: -0.5, bytes: [98, 32], top_logprobs: alternatives(at) });
    }
    const content = `**Answer ${i}**\n\n${"b ".repeat(TOKENS_PER_TURN)}`;
    const reply = { ...emptyReply(), content, tokens, tokenIds: Array<number>(TOKENS_PER_TURN).fill(98) };
    const exchange = { ...startExchange({ model: "fake", messages: [...said] }, 0), replies: [reply] };
    turns.set(`q${i}`, { kind: "question", id: `q${i}`, after, messages: [question] });
    const sent = { output: "text", constraint: "" } as const;
    turns.set(`a${i}`, { kind: "answers", id: `a${i}`, to: `q${i}`, sent, exchange: { ...exchange, state: "done" } });
    picks[after === null ? "" : `${after.turn}:0`] = `q${i}`;
    picks[`q${i}`] = `a${i}:0`;
    after = { turn: `a${i}`, reply: 0 };
    said.push({ role: "assistant", content });
  }
  const chat = { id: "c", title: null, at: 0, turns, columns: [{ picks }], startsAt: null };
  const kept: Kept = { chat, settings: { ...DEFAULTS, models: ["fake"] }, draft: "", deleted: [] };
  return toFile(kept);
}

inBrowser("a long chat", (bench) => {
  const server = shared(startTestServer);
  const openWith = async (turnCount: number) => {
    const page = await bench.open(server.url, { key: API_KEY });
    const buffer = Buffer.from(chatOf(turnCount));
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
    const page = await openWith(TURNS);
    expect(await page.locator(".round").count()).toBe(TURNS);
    const long = await typing(page);
    console.log(`longest task while typing: ${short.toFixed(1)} ms at one turn, ${long.toFixed(1)} ms at ${TURNS}`);
    expect(long).toBeLessThanOrEqual(Math.max(2.5 * short, 5));
    // tokens of all turns, too
    await page.getByLabel("tokens", { exact: true }).check();
    await page.getByRole("listbox").last().waitFor();
    const withTokens = await typing(page);
    console.log(`with tokens: ${withTokens.toFixed(1)} ms`);
    expect(withTokens).toBeLessThanOrEqual(Math.max(2.5 * short, 5));
  });
});
