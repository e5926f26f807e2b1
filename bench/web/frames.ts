// How smoothly the page moves: every frame while a list of a thousand groups opens and scrolls and rollouts are leafed through,
// and the time to the first paint.
import type { Browser, Page } from "playwright-core";
import { longestTask } from "../../test/web/tracing.ts";
import { KEY } from "./flywheel-process.ts";

const WAIT_MS = 120_000;

/**
 * The page's clock has steps of 0.1 ms, so a gap is known to 0.2 ms. Frames come every 16.67 ms: three of them are 50 ms, the
 * next longer gap is 66.7 ms.
 */
export const LATE_MS = 50.2;

export interface Frames {
  /** Milliseconds from one frame to the next. */
  slowest: number;
  frames: number;
  /** Gaps over LATE_MS. */
  late: number;
  /** Milliseconds of processor time of the longest task of the page. */
  longestTask: number;
}

/** A page in a context of its own, signed in, with an empty cache. */
export async function openPage(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(WAIT_MS);
  await context.addInitScript(`sessionStorage.setItem("flywheel.key", ${JSON.stringify(KEY)})`);
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

/** Milliseconds from the navigation to the first paint with content of a signed-in page. */
export async function firstPaint(browser: Browser, url: string): Promise<number> {
  const page = await openPage(browser, url);
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  const found = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null");
  await page.context().close();
  if (typeof found !== "number") throw new Error("the browser has not told the first paint");
  return found;
}

export interface JobFrames {
  open: Frames;
  scroll: Frames;
  rollouts: Frames;
}

/**
 * From the list of policies to the job, as a click on a link does it, then down to the end, then through the eight rollouts of
 * a group. Only names of elements are waited for: a search for text would keep the page itself busy.
 */
export async function jobFrames(browser: Browser, url: string, job: string): Promise<JobFrames> {
  const page = await openPage(browser, `${url}/policies`);
  await page.getByRole("table").waitFor();
  await page.evaluate(COUNT_FRAMES);
  const measured = async (work: () => Promise<unknown>): Promise<Frames> => {
    await page.evaluate("measured = []");
    const longest = await longestTask(page, async () => {
      await work();
    });
    const gaps = (await page.evaluate("measured")) as number[];
    const late = gaps.filter((gap) => gap > LATE_MS).length;
    return { slowest: Math.max(...gaps), frames: gaps.length, late, longestTask: longest };
  };
  const go = (path: string) =>
    page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`);
  const open = await measured(async () => {
    await go(`/jobs/${job}`);
    await page.locator(".long-list > li").first().waitFor();
    await page.waitForTimeout(1000);
  });
  await page.getByText("1,000 groups", { exact: true }).waitFor();
  const scroll = await measured(() => page.evaluate(SCROLL));
  await page.getByText(/^Task 999:/).waitFor();
  const rollouts = await measured(async () => {
    for (let one = 0; one < 8; one++) {
      await go(`/jobs/${job}/0/${one}`);
      await page.locator(".rollout-tokens").waitFor();
      await page.waitForTimeout(500);
    }
  });
  await page.getByRole("heading", { name: "rollout 8 of 8" }).waitFor();
  await page.context().close();
  return { open, scroll, rollouts };
}

/** These run in the page. */
const COUNT_FRAMES = `{
  globalThis.measured = [];
  let before = performance.now();
  const next = (now) => {
    measured.push(now - before);
    before = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}`;
const SCROLL = `(async () => {
  for (let before = -1; before !== scrollY; ) {
    before = scrollY;
    scrollBy(0, 200);
    await new Promise(requestAnimationFrame);
  }
})()`;
