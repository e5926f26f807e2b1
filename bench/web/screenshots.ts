// `npm run web:screenshots`: the pictures of docs/guides/web.md and the README, from a fresh server with the bundled model, and
// pictures of every page in every state, three sizes and two themes, to look at. Seeds and viewport are fixed, so the words on
// them stay the same; times and speeds are this machine's.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import { FakeMcpServer } from "../../test/support/mcp-server.ts";
import { findBrowser } from "../../test/web/find-browser.ts";
import { chartsAreDrawn } from "../../test/web/states.ts";
import { flagsOrExit } from "../process/flags-or-exit.ts";
import { KEY, ROOT, startFlywheel } from "./flywheel-process.ts";
import { takeAll } from "./pictures.ts";
import { fewColours } from "./png.ts";

const WAIT_MS = 300_000;
const VIEWPORT = { width: 1280, height: 800 };

const USAGE = `npm run web:screenshots -- [options]
  --docs         only those of the guide and the README
  --pages        only those of every page
  --only NAME    of these, states whose name contains NAME
  --out DIR      where those of every page go (default: screenshots)`;
const flags = flagsOrExit((args) => {
  const options = {
    docs: { type: "boolean", default: false },
    pages: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    out: { type: "string", default: join(ROOT, "screenshots") },
  } as const;
  return parseArgs({ args, options }).values;
}, USAGE);

async function takePictures(url: string, browser: Browser): Promise<void> {
  const context = await browser.newContext({ viewport: VIEWPORT, colorScheme: "light" });
  context.setDefaultTimeout(WAIT_MS);
  await context.addInitScript(`sessionStorage.setItem("flywheel.key", ${JSON.stringify(KEY)})`);
  const page = await context.newPage();
  const shoot = async (name: string) => {
    writeFileSync(join(ROOT, "docs/images", `${name}.png`), fewColours(await page.screenshot()));
    console.log(`docs/images/${name}.png`);
  };
  const isIdle = () => page.getByRole("button", { name: "Send" }).waitFor();

  await page.goto(`${url}/?n=8&seed=1&temperature=1&top_p=1&max_tokens=40&panel=teach`);
  await page.getByLabel("Message", { exact: true }).fill("Tell me about the sea.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("article").first().waitFor();
  await isIdle();
  await scrollTo(page, "start");
  await shoot("teach-1-answers");

  await sortByLength(page);
  await page.getByLabel("learning rate").fill("0.001");
  await shoot("teach-2-order");

  await page.getByRole("button", { name: "Dry run" }).click();
  await page.locator(".verdicts").waitFor();
  await scrollTo(page, "end");
  await shoot("teach-3-dry-run");

  await page.getByRole("button", { name: "Train", exact: true }).click();
  await page.getByText(/gradient step [1-9]/).waitFor();
  await scrollTo(page, "end");
  await shoot("teach-4-training");

  await page.getByText("It answers beside step 0").waitFor();
  await isIdle();
  await scrollTo(page, "start");
  await shoot("teach-5-beside");

  await page.goto(`${url}/?m=my-agent@0&m=my-agent@1&seed=3&temperature=1&top_p=1&max_tokens=40&view=tokens`);
  await page.getByLabel("Message", { exact: true }).fill("Tell me about the sea.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/first differs/).waitFor();
  await isIdle();
  await page.getByRole("option", { name: "␣deep", exact: true }).first().hover();
  await shoot("playground");

  await page.goto(`${url}/policies`);
  await page.getByRole("link", { name: "my-agent", exact: true }).click();
  await page.getByRole("link", { name: /^job / }).click();
  await page.getByRole("img", { name: /^Loss of/ }).waitFor();
  await page.locator(".long-list li").waitFor();
  await chartsAreDrawn(page);
  await page.setViewportSize({ ...VIEWPORT, height: 1180 }); // down to its group
  await shoot("job");
  await page.setViewportSize(VIEWPORT);
  await page.getByRole("link", { name: "0", exact: true }).click();
  await page.getByRole("link", { name: "Rollout 1", exact: true }).click();
  await page.getByLabel("what the gradient asked").check();
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByText(/identical ✓/).waitFor();
  await shoot("try");
  await page.getByRole("link", { name: "Loss lab" }).click();
  await page.getByText(/numbers of group 0, rollout 1/).waitFor();
  await shoot("lab");
  await context.close();
}

/** The conversation scrolls by itself. */
async function scrollTo(page: Page, place: "start" | "end"): Promise<void> {
  const top = place === "start" ? "0" : "node.scrollHeight";
  await page.evaluate(`{ const node = document.querySelector(".thread-scroll"); node.scrollTop = ${top}; }`);
}

/** The shortest answer first. An answer that is not rated yet comes last when it is moved up. */
async function sortByLength(page: Page): Promise<void> {
  const texts = await page.locator("article .markdown").allTextContents();
  const lines = texts.map((_text, i) => i).filter((i) => texts.indexOf(texts[i]!) === i);
  for (const answer of lines.sort((a, b) => texts[a]!.length - texts[b]!.length || a - b)) {
    await page.getByRole("button", { name: `Move answer ${answer + 1} up` }).click();
  }
}

const executablePath = findBrowser();
if (executablePath === null)
  throw new Error("no browser: apt-get install --no-install-recommends chromium-headless-shell");
const browser = await chromium.launch({ executablePath });
try {
  if (!flags.pages) await onFreshServer((url) => takePictures(url, browser));
  if (!flags.docs) {
    const tools = await FakeMcpServer.start();
    await onFreshServer((url) => takeAll(browser, url, flags.out, flags.only), "--mcp-server", `sea=${tools.url}`);
    await tools.close();
  }
} finally {
  await browser.close();
}

async function onFreshServer(work: (url: string) => Promise<void>, ...more: string[]): Promise<void> {
  const { url, stop } = await startFlywheel(...more);
  try {
    await work(url);
  } finally {
    stop();
  }
}
