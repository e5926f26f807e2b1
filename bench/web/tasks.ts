// The longest task of the page's thread at everything that one can do: all over a job of 2,000 rollouts, and for "raw JSON" of
// eight answers of 250 tokens.
import type { Browser, Page } from "playwright-core";
import { chartsAreDrawn } from "../../test/web/states.ts";
import { longestTask } from "../../test/web/tracing.ts";
import { openPage } from "./frames.ts";

/** Groups of eight. */
export const GROUPS = 250;

export interface Task {
  what: string;
  /** Milliseconds of processor time of the longest task. */
  longest: number;
}

type Work = (page: Page) => Promise<unknown>;

/** What is done one after the other, and how one sees that it is done. */
const JOB_WORK: Readonly<Record<string, Work>> = {
  "sorting groups": async (page) => {
    await page.getByRole("button", { name: "task", exact: true }).click();
    await page.locator('[data-sort="ascending"]').waitFor();
  },
  "choosing a verdict": async (page) => {
    await page.getByLabel("verdict").selectOption("trained");
    await page.getByText(`2 of ${GROUPS} groups`).waitFor();
    await page.getByLabel("verdict").selectOption("");
  },
  "looking for a text": async (page) => {
    await page.getByLabel("Text in tasks and rollouts").pressSequentially("the");
    await page
      .getByText(/^said in/)
      .first()
      .waitFor();
  },
  "a dry run of it": async (page) => {
    await page.getByRole("button", { name: "Again as dry run" }).click();
    await page.getByText(/Nothing was trained/).waitFor();
  },
  "a group side by side": async (page) => {
    await go(page, `${new URL(page.url()).pathname}/0`);
    await page.getByRole("article", { name: "Rollout 8" }).waitFor();
    await page.locator(".rollout .said").first().getByText(/\w/).waitFor();
  },
  "a rollout": async (page) => {
    await page.getByRole("link", { name: "Rollout 8", exact: true }).click();
    await page.getByRole("listbox").first().waitFor();
  },
  "colours of its tokens": async (page) => {
    await page.getByLabel("what the gradient asked").check();
    await page.locator(".rollout-tokens .masked, .rollout-tokens [style]").first().waitFor({ state: "attached" });
  },
  "the difference to another": async (page) => {
    await page.getByLabel(/^Difference to/).selectOption("0");
    await page.locator(".rollout-tokens del").first().waitFor();
  },
  "the loss lab": async (page) => {
    await page.getByRole("link", { name: "Loss lab" }).click();
    await page.getByText(/numbers of group 0/).waitFor();
  },
  "a slider of the lab": async (page) => {
    await page.getByRole("slider").first().press("ArrowLeft");
    await page.waitForTimeout(1000);
  },
  "all jobs with its curves": async (page) => {
    const [, , id] = new URL(page.url()).pathname.split("/");
    await go(page, `/jobs?with=${id}`);
    await chartsAreDrawn(page);
  },
};

/** `job`: the id of a job of GROUPS groups. */
export async function jobTasks(browser: Browser, url: string, job: string): Promise<Task[]> {
  const page = await openPage(browser, `${url}/access`);
  await page.getByRole("table").waitFor();
  const opening: Work = async () => {
    await go(page, `/jobs/${job}`);
    await page.locator(".long-list > li").first().waitFor();
    await chartsAreDrawn(page);
  };
  const found = [];
  for (const [what, work] of Object.entries({ "opening it": opening, ...JOB_WORK })) {
    found.push({ what, longest: await longestTask(page, async () => void (await work(page))) });
  }
  await page.context().close();
  return found;
}

/** Of the click on "raw JSON" below eight answers of 250 tokens. */
export async function rawTask(browser: Browser, url: string): Promise<number> {
  const page = await openPage(browser, `${url}/?n=8&seed=1&temperature=1&max_tokens=250&min_tokens=250`);
  await page.getByLabel("Message", { exact: true }).fill("Tell me about the sea.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("article").nth(7).waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  const longest = await longestTask(page, async () => {
    await page.getByLabel("raw JSON").check();
    await page.locator(".raw-view pre").nth(1).waitFor();
  });
  await page.context().close();
  return longest;
}

/** As a click on a link does. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`,
  );
}
