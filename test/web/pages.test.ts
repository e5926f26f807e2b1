// What holds for every page: a screen reader finds its way, axe has no serious finding in light and dark, and nothing is wider
// than a phone.
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";
import { KEY, type LearningServer, startLearningServer, storyGroups } from "./learning-server.ts";

interface Case {
  name: string;
  path: string;
  isSignedOut?: boolean;
  /** Waits until all of it is there. */
  isReady: (page: Page) => Promise<void>;
  /** Brings up what is not there at first. It is checked, but not part of the snapshot. */
  open?: (page: Page) => Promise<void>;
}

inBrowser("every page", (bench) => {
  const server = shared<LearningServer>(startLearningServer);
  let policy: string;
  let job: string;
  beforeAll(async () => {
    policy = (await server.register("agent")).id;
    job = (await server.client.train(policy, await storyGroups(server.client, "agent"))).id;
  });

  const cases: Case[] = [
    {
      name: "sign-in",
      path: "/",
      isSignedOut: true,
      isReady: (page) => page.getByRole("button", { name: "Enter" }).waitFor(),
    },
    {
      name: "playground",
      path: "/?m=agent",
      isReady: (page) => page.getByRole("button", { name: "Send" }).waitFor(),
    },
    {
      name: "policies",
      path: "/policies",
      isReady: (page) => page.getByRole("link", { name: "Chat with agent" }).waitFor(),
    },
    {
      name: "policy",
      path: "/policies/POLICY",
      isReady: async (page) => {
        await page.locator('.charts[aria-busy="false"] canvas').first().waitFor();
        await page.getByRole("link", { name: "Chat with step 1" }).waitFor();
      },
      open: (page) => page.getByRole("button", { name: "Roll back to step 0" }).click(),
    },
    {
      name: "jobs",
      path: "/jobs",
      isReady: (page) => page.getByRole("cell", { name: /15 trained/ }).waitFor(),
      open: async (page) => {
        await page.getByLabel(/^Draw the curves/).check();
        await page.locator("canvas").first().waitFor();
      },
    },
    {
      name: "group",
      path: "/jobs/JOB/2",
      isReady: async (page) => {
        await expect.poll(() => page.locator(".rollout .said").filter({ hasText: /\S/ }).count()).toBeGreaterThan(2);
        // what a model says differs from run to run
        await page.evaluate(
          `document.querySelectorAll(".said").forEach((node) => node.setAttribute("aria-hidden", "true"))`,
        );
      },
    },
    {
      name: "job",
      path: "/jobs/JOB",
      isReady: async (page) => {
        await page.getByText("nothing to learn", { exact: true }).waitFor();
        await page.getByRole("img", { name: /^Loss of/ }).waitFor();
        await page.locator('.charts[aria-busy="false"] canvas').first().waitFor();
      },
      open: async (page) => {
        await page.getByText("Left out, and why").click();
        await page.getByText("Configuration, as the server understood it").click();
      },
    },
    {
      name: "rollout",
      path: "/jobs/JOB/2/2?colour=ratio",
      isReady: async (page) => {
        await page.getByRole("listbox").first().focus();
        await page.getByText(/token 1, id .* not trained/).waitFor();
      },
      open: async (page) => {
        await page.getByLabel("Difference to").selectOption("rollout 1");
        await page.locator("ins").first().waitFor();
      },
    },
    {
      name: "serving",
      path: "/serving",
      isReady: async (page) => {
        await expect.poll(() => page.locator(".chart canvas").count()).toBe(4);
      },
    },
    {
      name: "access",
      path: "/access",
      isReady: (page) => page.getByRole("button", { name: "Create" }).waitFor(),
    },
  ];

  it.each(cases)("$name", async ({ name, path, isSignedOut, isReady, open }) => {
    const place = path.replace("POLICY", policy).replace("JOB", job);
    const page = await bench.open(server.url + place, isSignedOut ? {} : { key: KEY });
    await isReady(page);
    const heard = await page.getByRole("main").ariaSnapshot();
    await expect(withoutChance(heard)).toMatchFileSnapshot(`snapshots/${name}.aria.txt`);
    await open?.(page);
    expect(await seriousFindings(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 800 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
  });

  it("lies in a frame with the same links everywhere", async () => {
    const page = await bench.open(`${server.url}/access`, { key: KEY });
    const frame = await page.getByRole("navigation", { name: "Pages" }).ariaSnapshot();
    await expect(frame).toMatchFileSnapshot("snapshots/frame.aria.txt");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
  });
});

/** Numbers, ids and times differ from run to run, and so does what a model says that was trained to say nothing. */
function withoutChance(heard: string): string {
  return `${heard}\n`
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID")
    .replace(/\b(?=[a-f]*\d)[0-9a-f]{8}\b/g, "ID")
    .replace(/^( *)- option .*\n(\1- option .*\n)*/gm, "$1- option …\n")
    .replace(/^( *- paragraph): (none|[dp]\d[dp+\d ]*)$/gm, "$1: the tape")
    .replace(/ (a policy of another workspace|\S+@\d+) \(\d+ requests?\)/g, "")
    .replace(/began [A-Z][a-z]{2} \d+, \d+, [\d:]+\s[AP]M \S+/g, "began WHEN")
    .replace(/just now|[\d.]+ (s|min) ago/g, "AGO")
    .replace(/\d{1,2} [A-Z][a-z]{2,3} \d{4}, \d\d:\d\d/g, "MOMENT")
    .replace(/[\d.]+ (ms|s|min)\b/g, "TIME")
    .replace(/–(?=[ "])/g, "N")
    .replace(/< (?=\d)/g, "")
    .replace(/prefix hits (\d+ %|N)/, "prefix hits N %")
    .replace(/(?<!level=)[−-]?\d[\d,.]*(e[−-]?\d+)?/g, "N");
}
