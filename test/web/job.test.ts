// The page of a job in a browser: what became of its groups, while it waits, runs and is cancelled, and with a thousand groups.
// The jobs are real ones, of a tiny model.
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import type { Choice, TrainingJob } from "../../src/client/types.ts";
import { number } from "../../web/format.ts";
import { shared } from "../support/shared-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";
import { answers, groupOf, KEY, type LearningServer, startLearningServer, storyGroups } from "./learning-server.ts";
import { longestTask } from "./tracing.ts";

inBrowser("the page of a job", (bench) => {
  const server = shared<LearningServer>(startLearningServer);
  let job: TrainingJob;
  beforeAll(async () => {
    const { id } = await server.register("agent");
    const config = { learning_rate: 1e-4, grad_accumulation_sequences: 4 };
    job = await server.client.train(id, await storyGroups(server.client, "agent"), { config });
  });

  const open = (path: string, options = {}) => bench.open(`${server.url}/jobs/${path}`, { key: KEY, ...options });
  const lines = (page: Page) => page.locator(".long-list > li");

  it("shows what became of a job and of every group", async () => {
    const page = await open(job.id);
    await page.getByText("COMPLETED").waitFor();
    await page.getByText("from step 0 to step 1").waitFor();
    await page.getByText("15 trained").first().waitFor();
    const { tokens, trainable_tokens } = job.totals!;
    expect(trainable_tokens).toBeGreaterThan(15);
    const facts = `3 groups · 24 rollouts · ${number(tokens)} tokens, ${trainable_tokens} of them trained · began `;
    await page.getByText(facts).waitFor();
    const events = [];
    for await (const event of server.client.events(job.id)) if (event.type === "gradient_step") events.push(event);
    expect(events.length).toBe(4);
    const loss = events.at(-1)!.data.loss!;
    await page
      .getByText(`loss ${number(loss)}`)
      .first()
      .waitFor();
    await page.getByRole("img", { name: "Loss of 4 gradient steps" }).waitFor();
    await page.getByRole("img", { name: "24 rewards from 0 to 1" }).waitFor();
    await page.getByRole("img", { name: /^Rewards of 16 rollouts of \d+ to \d+ tokens$/ }).waitFor();
    expect(await lines(page).count()).toBe(3);
    expect(await lines(page).nth(1).textContent()).toContain("8 zero_advantagenothing to learn");
    expect(await lines(page).nth(0).textContent()).not.toContain("nothing to learn");
    expect(await lines(page).nth(0).textContent()).toContain("0.44 ± 0.34");
    expect(await lines(page).nth(2).textContent()).toContain("1 failed");
    await page.getByText("Configuration, as the server understood it").click();
    await page.getByText('"learning_rate": 0.0001').waitFor();
    await page.getByText("Left out, and why").click();
    await page.getByText(/^1 too_long: .*longer than 512 tokens.*group 2, rollout 8/).waitFor();
    expect(await page.getByRole("button", { name: "cancel" }).count()).toBe(0);
    expect(await page.title()).toBe(`Job ${job.id.slice(0, 8)} · Flywheel`);
  });

  it("filters by verdict, reward and text, and keeps the filter in the address", async () => {
    const page = await open(job.id);
    await page.getByLabel("verdict").selectOption("too_long");
    await expect.poll(() => lines(page).count()).toBe(1);
    await page.getByText("1 of 3 groups").waitFor();
    expect(new URL(page.url()).search).toBe("?verdict=too_long");
    await page.getByLabel("verdict").selectOption("");
    await page.getByLabel("reward from").fill("0.5");
    await page.getByLabel("to", { exact: true }).fill("0.7");
    await page.keyboard.press("Tab");
    await expect.poll(() => lines(page).count()).toBe(2);
    await page.locator(".reward-bars .dim").first().waitFor();
    const pale = (await page.evaluate(PALE_BARS)) as string;
    expect(pale.match(/M/g)).toHaveLength(14);
    await page.locator("h1").click();
    await page.keyboard.press("/");
    await page.keyboard.type("FISH");
    await expect.poll(() => lines(page).count()).toBe(1);
    expect(new URL(page.url()).search).toBe("?min=0.5&max=0.7&text=FISH");
    await page.reload();
    await expect.poll(() => lines(page).count()).toBe(1);
    expect(await page.getByLabel("Text in tasks and rollouts").inputValue()).toBe("FISH");
    await page.getByLabel("Text in tasks and rollouts").fill("no such fish");
    await page.getByText("0 of 3 groups").waitFor();
    expect(await lines(page).count()).toBe(0);
    // one rollout answers so, and what a tool told another
    for (const said of ["a cod.", "WAVES"]) {
      await page.getByLabel("Text in tasks and rollouts").fill(said);
      await expect.poll(() => lines(page).count()).toBe(1);
      expect(await lines(page).nth(0).textContent()).toContain("Name a fish.");
      await page.getByText("searching").waitFor({ state: "detached" });
      await page.getByText("1 of 3 groups").waitFor();
      await page.getByLabel("Text in tasks and rollouts").fill("no such fish");
      await expect.poll(() => lines(page).count()).toBe(0);
    }
    await page.getByLabel("Text in tasks and rollouts").fill("");
    await expect.poll(() => lines(page).count()).toBe(2);
  });

  it("follows a job while it waits, runs and ends, and cancels one after asking", async () => {
    const { id } = await server.register("busy");
    const choices = await answers(server.client, "busy", "hello", 8);
    // one gradient step for every rollout: it takes long, if nobody cancels it
    const endless = Array.from({ length: 1000 }, () => groupOf("hello", choices, [0, 1, 2, 3, 4, 5, 6, 7]));
    const config = { grad_accumulation_sequences: 1 };
    const first = await server.client.submit(id, endless, { config });
    const second = await server.client.submit(id, [groupOf("hello", choices, [0, 1, 2, 3])]);
    const waiting = await open(second.id);
    await waiting.getByText("PENDING").waitFor();
    const running = await open(first.id);
    await running.getByText("RUNNING", { exact: true }).waitFor();
    await running.getByText(/\b[1-9]\d* of 8,000 gradient steps/).waitFor();
    await running
      .getByText(/^loss /)
      .first()
      .waitFor();
    await running.getByText(/, about \d.* left$/).waitFor();
    await running.getByText("8,000 to train").waitFor();
    await running
      .getByRole("banner")
      .getByRole("link", { name: /^1 job trains \S+ %, 1 job waiting$/ })
      .waitFor();
    await running.locator(".chart").filter({ hasText: "gradient norm" }).locator("canvas").waitFor();
    const done = async () =>
      Number.parseInt((await running.getByText(/of 8,000/).textContent())!.trim().replaceAll(",", ""), 10);
    const before = await done();
    await expect.poll(done).toBeGreaterThan(before);
    expect(await waiting.getByText("PENDING").count()).toBe(1);

    await running.getByRole("button", { name: "cancel" }).click();
    await running.getByRole("button", { name: "No", exact: true }).click();
    expect((await server.client.job(first.id)).status).toBe("RUNNING");
    await running.getByRole("button", { name: "cancel" }).click();
    await running.getByRole("button", { name: "Yes, cancel" }).click();
    await running.getByText("CANCELLED", { exact: true }).waitFor();
    expect((await server.client.job(first.id)).status).toBe("CANCELLED");
    expect(await running.getByRole("button", { name: "cancel" }).count()).toBe(0);
    await running.getByText("8,000 not trained").first().waitFor();
    expect(await running.getByText(/\d trained/).count()).toBe(0);

    await waiting.getByText("COMPLETED").waitFor();
    await waiting.getByText("from step 0 to step 1").waitFor();
    await waiting.locator(".long-list").getByText("4 trained").waitFor();
    await waiting.getByRole("link", { name: "policy" }).click();
    const jobs = waiting.getByRole("region", { name: "Jobs", exact: true });
    const cancelled = jobs.getByRole("row").filter({ hasText: "cancelled" });
    await cancelled.getByText("0 → –").waitFor();
    await cancelled.getByText("8,000 not trained").waitFor();
  });

  it("sorts groups by every column, and marks what was looked for down to the rollout", async () => {
    const page = await open(job.id);
    const groups = () => lines(page).locator("span:first-child > a").allTextContents();
    await expect.poll(groups).toEqual(["0", "1", "2"]);
    const sort = (name: string) => page.getByRole("button", { name, exact: true }).click();
    await sort("mean");
    await expect.poll(groups).toEqual(["2", "0", "1"]);
    await sort("mean");
    await expect.poll(groups).toEqual(["1", "0", "2"]);
    await sort("spread");
    await expect.poll(groups).toEqual(["1", "2", "0"]);
    await sort("task");
    await expect.poll(groups).toEqual(["2", "1", "0"]);
    await sort("failed");
    await sort("failed");
    await expect.poll(groups).toEqual(["2", "0", "1"]);
    await page.getByLabel("Text in tasks and rollouts").fill("a COD.");
    await expect.poll(groups).toEqual(["2"]);
    expect(new URL(page.url()).search).toBe("?sort=-failed&text=a+COD.");
    await page.getByLabel("Text in tasks and rollouts").fill("fish");
    await page.locator(".task mark").getByText("fish", { exact: true }).waitFor();
    await page.getByLabel("Text in tasks and rollouts").fill("a COD.");
    await page.getByRole("link", { name: "said in 1 rollout" }).click();
    await page.getByRole("heading", { name: "Group 2, rollout 3 of 8" }).waitFor();
    await page.locator(".turns mark").getByText("A cod.", { exact: true }).waitFor();
  });

  it("shows a group side by side, the best first, and how the others differ from it", async () => {
    const page = await open(job.id);
    await page.getByRole("link", { name: "2", exact: true }).click();
    await page.getByRole("heading", { name: "Group 2" }).waitFor();
    const rollouts = page.locator("article.rollout");
    await expect.poll(() => rollouts.count()).toBe(8);
    const titles = await rollouts.locator("h2 a").allTextContents();
    expect(titles).toEqual(["3", "8", "1", "2", "4", "5", "6", "7"].map((place) => `Rollout ${place}`));
    await rollouts.nth(0).getByText("A cod.").waitFor();
    await rollouts.nth(0).getByText("best", { exact: true }).waitFor();
    await rollouts.nth(1).locator("del").filter({ hasText: "A cod." }).waitFor();
    await rollouts.nth(1).getByText("too_long").waitFor();
    expect(await rollouts.nth(0).locator("del, ins").count()).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByLabel("show how each differs from the best").uncheck();
    await rollouts.locator("del").first().waitFor({ state: "detached" });
    await page.keyboard.press("[");
    await page.getByRole("heading", { name: "Group 1" }).waitFor();
    await page.getByText("nothing to learn: all rewards are the same").waitFor();
    await page.setViewportSize({ width: 360, height: 800 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
    await page.getByRole("link", { name: "Rollout 2" }).click();
    await page.getByRole("heading", { name: "Group 1, rollout 2 of 8" }).waitFor();
  });

  it("tells on every page, and in the title, that a job ended or failed", async () => {
    const { id } = await server.register("told");
    const page = await bench.open(`${server.url}/access`, { key: KEY });
    await page.getByRole("heading", { name: "Access" }).waitFor();
    const choices = await answers(server.client, "told", "hello", 4);
    const groups = [groupOf("hello", choices, [0, 1, 2, 3])];
    const { id: good } = await server.client.train(id, groups);
    const notices = page.locator(".job-notices");
    await notices.getByText("ended").waitFor();
    await notices.getByRole("link", { name: `Job ${good.slice(0, 8)}` }).waitFor();
    await expect.poll(() => page.title()).toBe("✓ job ended · Access · Flywheel");
    await notices.getByRole("button", { name: `Close the notice of job ${good.slice(0, 8)}` }).click();
    await expect.poll(() => page.title()).toBe("Access · Flywheel");
    const config = { learning_rate: 1e300, num_trajectories_learning_rate_multiplier_power: 99 };
    const { id: bad } = await server.client.submit(id, groups, { config });
    await notices.getByText("failed").waitFor();
    await expect.poll(() => page.title()).toBe("✗ job failed · Access · Flywheel");
    await notices.getByRole("link", { name: `Job ${bad.slice(0, 8)}` }).click();
    await page.getByText("FAILED", { exact: true }).waitFor();
    await expect.poll(() => notices.locator(".job-notice").count()).toBe(0);
  });

  it("looks for the end of an open job in the background, too", async () => {
    const { id } = await server.register("hidden");
    const choices = await answers(server.client, "hidden", "hello", 8);
    const groups = Array.from({ length: 20 }, () => groupOf("hello", choices, [0, 1, 2, 3, 4, 5, 6, 7]));
    const page = await bench.open(`${server.url}/access`, { key: KEY });
    await page.clock.install();
    await page.reload();
    await page.getByRole("heading", { name: "Access" }).waitFor();
    const { id: open } = await server.client.submit(id, groups, { config: { grad_accumulation_sequences: 1 } });
    await page
      .getByRole("banner")
      .getByText(/^1 job /)
      .waitFor();
    await page.evaluate(`Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));`);
    await expect.poll(async () => (await server.client.job(open)).status, { timeout: 120_000 }).toBe("COMPLETED");
    await page.clock.runFor(16_000);
    await expect.poll(() => page.title()).toBe("✓ job ended · Access · Flywheel");
  });

  it("says that a record is gone, or that there is no such job", async () => {
    bench.announce(/404|410/);
    const { id } = await server.register("forgotten");
    const choices = await answers(server.client, "forgotten", "hello", 2);
    const { id: forgotten } = await server.client.train(id, [groupOf("hello", choices, [0, 1])]);
    rmSync(join(server.service.config.data, "training", "records", id), { recursive: true });
    const page = await open(forgotten);
    await page.getByText(/--keep-trajectories/).waitFor();
    await page.getByText("2 trained").first().waitFor();
    const other = await open("none");
    await other.getByRole("alert").filter({ hasText: /\w/ }).waitFor();
    await other.getByRole("link", { name: "All jobs" }).waitFor();
  });

  it("shows every verdict of a group at any width", async () => {
    const { id } = await server.register("various");
    const choices = await answers(server.client, "various", "hello", 8);
    const teach = groupOf("hello", choices, [0, 1], { initial_policy_version: 0 });
    await server.client.train(id, [teach]);
    const group = groupOf("hello", choices, [0, 1, 0.5, 0.2, 0.8, 0.4, 0.6], { initial_policy_version: 1 });
    const { logprobs: _, ...silent } = choices[3]!;
    group.trajectories[1] = { ...group.trajectories[1]!, initial_policy_version: 0 };
    group.trajectories[3]!.messages_and_choices = [{ role: "user", content: "hello" }, silent as Choice];
    const long = { ...choices[4]!, prompt_token_ids: Array<number>(600).fill(5) };
    group.trajectories[4]!.messages_and_choices = [{ role: "user", content: "hello" }, long];
    group.exceptions = [{ type: "TimeoutError", message: "no reply" }];
    const { id: mixed } = await server.client.train(id, [group], { config: { max_steps_off_policy: 0 } });
    const page = await open(mixed);
    const chips = lines(page).first().locator(".chip");
    await chips.first().waitFor();
    expect(await chips.allTextContents()).toEqual([
      "3 trained",
      "1 stale",
      "1 zero_advantage",
      "1 no_logprobs",
      "1 too_long",
      "1 failed",
    ]);
    for (const width of [360, 700, 768, 1100, 1101, 1280, 1600]) {
      await page.setViewportSize({ width, height: 800 });
      const cut = await page.evaluate(CUT_OFF);
      expect([width, cut]).toEqual([width, []]);
    }
  });

  describe("with 1,100 groups of eight", () => {
    let large: string;
    beforeAll(async () => {
      const { id } = await server.register("large");
      const choices = await answers(server.client, "large", "hello", 8);
      const rewards = (i: number) => (i % 100 === 0 ? [0, 0, 0, 0, 1, 1, 1, (i / 100) % 2] : Array<number>(8).fill(1));
      const groups = Array.from({ length: 1100 }, (_, i) => groupOf(`Task ${i}`, choices, rewards(i)));
      large = (await server.client.train(id, groups)).id;
    });

    it("opens and scrolls in short tasks, and loads more", async () => {
      const page = await bench.open(`${server.url}/access`, { key: KEY });
      const opening = await longestTask(page, async () => {
        await page.evaluate(
          `history.pushState(null, "", "/jobs/${large}"); dispatchEvent(new PopStateEvent("popstate"))`,
        );
        await lines(page).first().waitFor();
      });
      await page.getByText("1,000 groups. The job has more.").waitFor();
      await page.getByText("Task 0", { exact: true }).waitFor();
      const scrolling = await longestTask(page, async () => {
        for (const most of (await page.evaluate(SCROLL_THROUGH)) as number[]) expect(most).toBeLessThan(80);
      });
      // milliseconds of the processor, so that a busy machine changes little
      expect(opening).toBeLessThan(50);
      expect(scrolling).toBeLessThan(50);
      await page.getByText("Task 999", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Load 1,000 more" }).click();
      await page.getByText("1,100 groups", { exact: true }).waitFor();
      await page.getByLabel("Text in tasks and rollouts").fill("Task 1099");
      await expect.poll(() => lines(page).count()).toBe(1);
      expect(await lines(page).first().getAttribute("aria-setsize")).toBe("1");
    });

    it("sorts, filters, and shows a group and a rollout in tasks of less than 100 ms", async () => {
      const page = await open(large);
      await page.getByText("Task 0", { exact: true }).waitFor();
      const longest: Record<string, number> = {};
      const during = async (name: string, work: () => Promise<unknown>) => {
        longest[name] = await longestTask(page, async () => void (await work()));
      };
      await during("sort", async () => {
        await page.getByRole("button", { name: "task", exact: true }).click();
        await page.getByRole("button", { name: "task", exact: true }).click();
        await page.getByText("Task 999", { exact: true }).waitFor();
      });
      await during("filter", async () => {
        await page.getByLabel("verdict").selectOption("trained");
        await expect.poll(() => lines(page).first().getAttribute("aria-setsize")).toBe("10");
        await page.getByLabel("verdict").selectOption("");
        await page.getByLabel("Text in tasks and rollouts").pressSequentially("Task 99");
        await page.getByText("said in 8 rollouts").first().waitFor();
      });
      await during("group", async () => {
        await page.getByRole("link", { name: "999", exact: true }).click();
        await page.locator(".rollout ins").first().waitFor();
      });
      await during("rollout", async () => {
        await page.getByRole("link", { name: "Rollout 2", exact: true }).click();
        await page.locator(".token").first().waitFor();
      });
      // milliseconds of the processor, so that a busy machine changes little
      expect(Object.entries(longest).filter(([, most]) => most >= 100)).toEqual([]);
    });

    it("keeps the focus and tells places though most lines do not exist", async () => {
      const page = await open(large);
      const link = page.getByRole("link", { name: "3", exact: true });
      await link.focus();
      await page.evaluate("scrollTo(0, document.body.scrollHeight)");
      const last = page.locator('li[aria-posinset="1000"]');
      await last.waitFor();
      expect(await last.getAttribute("aria-setsize")).toBe("1000");
      expect(await page.evaluate("document.activeElement.textContent")).toBe("3");
      expect(await page.locator('li[aria-posinset="500"]').count()).toBe(0);
      // on from the line with the focus, which brings it back into the window
      await page.keyboard.press("Tab");
      await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("4");
      await expect.poll(() => last.count()).toBe(0);
      for (const [key, group] of Object.entries({ j: "5", k: "4" })) {
        await page.keyboard.press(key);
        expect(await page.evaluate("document.activeElement.textContent")).toBe(group);
      }
    });

    it("has lines that do not lie over each other, at any width", async () => {
      const page = await open(large);
      await page.locator(".long-list").waitFor();
      for (const width of [360, 900, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        await page.evaluate("document.querySelector('.long-list').scrollIntoView()");
        await lines(page).nth(5).waitFor();
        const places = (await page.evaluate(PLACES)) as { top: number; bottom: number; inner: number }[];
        for (const [i, { bottom, inner }] of places.entries()) {
          expect(inner).toBeLessThanOrEqual(bottom + 1);
          if (i > 0) expect(places[i]!.top).toBeCloseTo(places[i - 1]!.bottom, 0);
        }
      }
    });
  });
});

/** Runs in the page: the paths of all bars that do not fit the filter. */
const PALE_BARS = `[...document.querySelectorAll(".reward-bars .dim")].map((bars) => bars.getAttribute("d")).join("")`;

/** Runs in the page: what a line has beyond its right end or its bottom. */
const CUT_OFF = `[...document.querySelectorAll(".long-list > li")].flatMap((line) => {
  const { right, bottom } = line.getBoundingClientRect();
  const boxes = [...line.querySelectorAll("*")].map((part) => [part.textContent, part.getBoundingClientRect()]);
  return boxes.filter(([, box]) => box.right > right + 1 || box.bottom > bottom + 1).map(([text]) => text);
})`;

/** Runs in the page: where lines begin and end, and where what is in them ends. */
const PLACES = `[...document.querySelectorAll(".long-list > li")].map((line) => {
  const { top, bottom } = line.getBoundingClientRect();
  const inner = Math.max(...[...line.querySelectorAll("*")].map((node) => node.getBoundingClientRect().bottom));
  return { top, bottom, inner };
})`;

/** Runs in the page: down to the end, half a screen a frame. Returns how many lines there were at each. */
const SCROLL_THROUGH = `(async () => {
  const frame = () => new Promise((resolve, reject) => {
    requestAnimationFrame(resolve);
    setTimeout(() => reject(new Error("no frame for a minute, at " + scrollY + " of " + document.body.scrollHeight)), 60_000);
  });
  const counts = [];
  for (let before = -1; before !== scrollY; ) {
    if (counts.length > 10_000) throw new Error("no end at " + scrollY + " of " + document.body.scrollHeight);
    before = scrollY;
    scrollBy(0, innerHeight / 2);
    await frame();
    await frame();
    counts.push(document.querySelectorAll(".long-list > li").length);
  }
  return counts;
})()`;
