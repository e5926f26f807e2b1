// What open tabs cost the server: its processor time with and without them.
import type { Browser, Page } from "playwright-core";
import { KEY } from "./flywheel-process.ts";
import { openPage } from "./frames.ts";

/** Ten live views: four of the engine, three of a job, three of the policies. Each has a context of its own, as ten people have. */
export async function openTabs(browser: Browser, url: string, job: string): Promise<Page[]> {
  const paths = [...Array<string>(4).fill("/serving"), ...Array<string>(3).fill(`/jobs/${job}`)];
  const pages = [];
  for (const path of [...paths, ...Array<string>(3).fill("/policies")]) pages.push(await openPage(browser, url + path));
  for (const page of pages) await page.getByRole("heading", { level: 1 }).waitFor();
  return pages;
}

export async function closeTabs(pages: readonly Page[]): Promise<void> {
  for (const page of pages) await page.context().close();
}

/** Processor time of the server's process, in percent of one core, over `seconds`. The trainer is another process. */
export async function serverLoad(url: string, seconds: number): Promise<number> {
  const [before, began] = [await cpuSeconds(url), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const spent = (await cpuSeconds(url)) - before;
  return (100 * spent) / ((performance.now() - began) / 1000);
}

async function cpuSeconds(url: string): Promise<number> {
  const reply = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${KEY}` } });
  const found = /^process_cpu_seconds_total ([\d.e+-]+)/m.exec(await reply.text());
  if (found === null) throw new Error("the server does not tell its processor time");
  return Number(found[1]);
}
