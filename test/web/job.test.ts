// The page of a job in a browser. The server is real; the job is made up, to have every verdict and a thousand groups.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { TrainingJob } from "../../src/client/types.ts";
import { shared } from "../wire/shared-server.ts";
import { API_KEY, startTestServer } from "../wire/test-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";

const ID = "8f2c0000-0000-4000-8000-000000000001";

function job(change: Partial<TrainingJob> = {}): TrainingJob {
  return {
    ...{ id: ID, model_id: "m", status: "COMPLETED", progress: 1, error_message: null, kind: "rl", attempts: 1 },
    ...{ training_start: "2026-01-01T00:00:00Z", training_end: "2026-01-01T00:00:11Z" },
    ...{ created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:11Z", from_step: 14, step: 15 },
    config: { learning_rate: 5e-6, loss_fn: "cispo" },
    totals: {
      ...{ groups: 3, trainable_groups: 2, trajectories: 24, trained: 15, tokens: 6210, trainable_tokens: 1200 },
      by_status: { trained: 15, zero_advantage: 8, too_long: 1 },
    },
    gradient_steps: { done: 3, total: 3 },
    report: {
      trajectories: [
        {
          ...{ group: 2, trajectory: 7, status: "too_long", reason: "too_long", reward: 0, advantage: 0 },
          message: "it has 9,000 tokens; a sequence may have 8,192",
        },
      ],
      totals: {},
      usage: { tokens: 6210, seconds: 11, peak_bytes: 516e6 },
    },
    ...change,
  };
}

function group(index: number, task: string, rewards: number[], statusOf: (trajectory: number) => string) {
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const verdicts: Record<string, number> = {};
  for (const i of rewards.keys()) verdicts[statusOf(i)] = (verdicts[statusOf(i)] ?? 0) + 1;
  return {
    ...{ id: String(index), group: index, task, rewards, mean, verdicts, metadata: null, logs: null },
    spread: Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length),
    trajectories: rewards.map((reward, trajectory) => ({
      ...{ trajectory, reward, status: statusOf(trajectory), reason: null, advantage: reward - mean },
      ...{ tokens: 40 + trajectory * 7 + index, trainable_tokens: 20 },
    })),
    exceptions: index === 2 ? [{ type: "TimeoutError", message: "no reply" }] : [],
  };
}

const GROUPS = [
  group(0, "What is 412 + 99?", [0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9, 1], () => "trained"),
  group(1, "What is 100 + 200?", [1, 1, 1, 1, 1, 1, 1, 1], () => "zero_advantage"),
  group(2, "Name a fish.", [0, 0, 0.5, 0, 0, 0, 0, 0.25], (i) => (i === 7 ? "too_long" : "trained")),
];

const listOf = (data: readonly unknown[], hasMore = false) => ({ object: "list", data, has_more: hasMore });
const stepEvent = (id: number, loss: number) => ({
  ...{ id: String(id), type: "gradient_step", created_at: "2026-01-01T00:00:01Z" },
  data: { loss, grad_norm: 0.08, entropy: 1.2 },
});
const endEvent = { id: "9", type: "training_ended", data: {}, created_at: "2026-01-01T00:00:11Z" };
const streamOf = (events: readonly { id: string; type: string }[]) =>
  events.map((event) => `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");

interface Story {
  job: TrainingJob;
  groups: (after: string | null) => { status?: number; body: object };
  events: string;
}

const FINISHED: Story = {
  job: job(),
  groups: () => ({ body: listOf(GROUPS) }),
  events: streamOf([stepEvent(1, 0.2), stepEvent(2, -0.1), endEvent]),
};

/** Try `index` of group 2: it calls a tool and answers in four tokens. */
function trajectory(index: number) {
  const call = { id: "1", type: "function", function: { name: "look", arguments: '{"at":"sea"}' } };
  return {
    ...{ object: "trajectory", job_id: ID, model_id: "m", group: 2, trajectory: index, size: 8, from_step: 14 },
    ...{ reward: index === 2 ? 0.5 : 0, advantage: index === 2 ? 2.5 : -0.4, weight: 0.84 },
    ...(index === 7 ? { status: "too_long", message: "it has 9,000 tokens" } : { status: "trained", message: null }),
    messages_and_choices: [
      { role: "user", content: "Name a fish. <img src=x onerror=\"console.error('ran')\">" },
      { finish_reason: "tool_calls", message: { role: "assistant", content: null, tool_calls: [call] } },
      { role: "tool", content: "waves" },
      { finish_reason: "stop", message: { role: "assistant", content: `A cod ${index}.`, reasoning: "Hm, fish." } },
    ],
    ...{ tools: null, metadata: { difficulty: 2 }, metrics: { words: 3 }, logs: ["a line"] },
    sequences: [
      {
        ...{ tokens: [1, 2, 3, 10 + index], token_strings: ["Name a fish.", "A", " cod", ` ${index}.`] },
        ...{ mask: [0, 1, 1, 1], logprobs: [null, -0.1, -3, -6], advantages: [0, -0.4, -0.4, -0.4] },
      },
    ],
    exceptions: [{ type: "TimeoutError", message: "no reply" }],
  };
}

const NUMBERS = {
  ...{ object: "token_numbers", fields: ["ratio", "gradient"] },
  sequences: [{ sequence: 0, positions: [1, 2, 3], values: { ratio: [1, 1.25, 0.5], gradient: [0.1, -0.2, 0.05] } }],
};

inBrowser("the page of a job", (bench) => {
  const server = shared(startTestServer);

  /** The page at `path` below the job, where the server tells `story`. It may change later. */
  const open = async (story: Story, path = "", options = {}): Promise<Page> => {
    const page = await bench.open(`${server.url}/`, { key: API_KEY, ...options });
    const root = `**/v1/preview/training-jobs/${ID}`;
    await page.route(root, (route) => route.fulfill({ json: story.job }));
    await page.route(`${root}/events`, (route) =>
      route.fulfill({ contentType: "text/event-stream", body: story.events }),
    );
    await page.route(`${root}/groups?*`, (route) => {
      const { status = 200, body } = story.groups(new URL(route.request().url()).searchParams.get("after"));
      return route.fulfill({ status, json: body });
    });
    await page.route(`${root}/groups/2/trajectories/*`, (route) =>
      route.fulfill({ json: trajectory(Number(route.request().url().split("/").at(-1))) }),
    );
    await page.route(`${root}/groups/2/trajectories/*/tokens`, (route) =>
      route.request().url().includes("/7/")
        ? route.fulfill({ status: 404, json: { error: { message: "The trainer kept no numbers for it." } } })
        : route.fulfill({ json: NUMBERS }),
    );
    await page.goto(`${server.url}/jobs/${ID}${path}`);
    return page;
  };
  const lines = (page: Page) => page.locator(".group-list > li");

  it("shows what became of a job and of every group", async () => {
    const page = await open(FINISHED);
    await page.getByText("COMPLETED").waitFor();
    await page.getByText("from step 14 to step 15").waitFor();
    await page.getByText("15 trained").first().waitFor();
    await page
      .getByText("3 groups · 24 tries · 6,210 tokens, 1,200 of them trained · 11.0 s · 516 MB at the most")
      .waitFor();
    await page.getByText("loss −0.1").waitFor();
    await page.getByRole("img", { name: "24 rewards from 0 to 1" }).waitFor();
    await page.getByRole("img", { name: "Rewards of 24 tries of 40 to 91 tokens" }).waitFor();
    expect(await lines(page).count()).toBe(3);
    expect(await lines(page).nth(1).textContent()).toContain("nothing to learn");
    expect(await lines(page).nth(0).textContent()).not.toContain("nothing to learn");
    expect(await lines(page).nth(0).textContent()).toContain("0.44 ± 0.34");
    expect(await lines(page).nth(2).textContent()).toContain("1 failed");
    await page.getByText("Configuration, as the server understood it").click();
    await page.getByText('"learning_rate": 0.000005').waitFor();
    await page.getByText("Left out, and why").click();
    await page.getByText("it has 9,000 tokens; a sequence may have 8,192").waitFor();
    expect(await page.getByRole("button", { name: "cancel" }).count()).toBe(0);
    expect(await page.title()).toBe("Job 8f2c0000 · Flywheel");
  });

  it("filters by verdict, reward and text, and keeps the filter in the address", async () => {
    const page = await open(FINISHED);
    await page.getByLabel("verdict").selectOption("too_long");
    await expect.poll(() => lines(page).count()).toBe(1);
    await page.getByText("1 of 3 groups").waitFor();
    expect(new URL(page.url()).search).toBe("?verdict=too_long");
    await page.getByLabel("verdict").selectOption("");
    await page.getByLabel("reward from").fill("0.5");
    await page.getByLabel("to", { exact: true }).fill("0.7");
    await page.keyboard.press("Tab");
    await expect.poll(() => lines(page).count()).toBe(2);
    await expect.poll(() => page.locator(".reward-bars > .dim").count()).toBe(14);
    await page.locator("h1").click();
    await page.keyboard.press("/");
    await page.keyboard.type("FISH");
    await expect.poll(() => lines(page).count()).toBe(1);
    expect(new URL(page.url()).search).toBe("?min=0.5&max=0.7&text=FISH");
    await page.reload();
    await expect.poll(() => lines(page).count()).toBe(1);
    expect(await page.getByLabel("Text in the task").inputValue()).toBe("FISH");
  });

  it("follows a running job, and cancels it after asking", async () => {
    const story: Story = {
      ...FINISHED,
      job: job({ status: "RUNNING", step: null, report: null, gradient_steps: { done: 1, total: 3 } }),
      events: streamOf([stepEvent(1, 0.2)]),
    };
    const page = await open(story);
    await page.getByText("1 of 3 gradient steps").waitFor();
    story.job = job({ status: "RUNNING", step: null, report: null, gradient_steps: { done: 2, total: 3 } });
    story.events = streamOf([stepEvent(2, 0.15)]);
    await page.getByText("2 of 3 gradient steps").waitFor();
    await page.getByText("loss 0.15").waitFor();
    let cancels = 0;
    await page.route(`**/v1/preview/training-jobs/${ID}/cancel`, (route) => {
      cancels += 1;
      story.job = job({ status: "CANCELLED", step: null, report: null, error_message: "The job was cancelled." });
      return route.fulfill({ json: story.job });
    });
    await page.getByRole("button", { name: "cancel" }).click();
    await page.getByRole("button", { name: "No" }).click();
    expect(cancels).toBe(0);
    await page.getByRole("button", { name: "cancel" }).click();
    await page.getByRole("button", { name: "Yes, cancel" }).click();
    await page.getByText("CANCELLED", { exact: true }).waitFor();
    await page.getByText("The job was cancelled.").waitFor();
    expect(cancels).toBe(1);
    expect(await page.getByRole("button", { name: "cancel" }).count()).toBe(0);
  });

  it("says that a record is gone, or that there is no such job", async () => {
    bench.announce(/404|410/);
    const error = { message: "The record of this job was removed.", code: "record_expired" };
    const page = await open({ ...FINISHED, groups: () => ({ status: 410, body: { error } }) });
    await page.getByText("The record of this job was removed.").waitFor();
    await page.getByText("15 trained").first().waitFor();
    const other = await bench.open(`${server.url}/jobs/none`, { key: API_KEY });
    await other.getByRole("alert").filter({ hasText: /\w/ }).waitFor();
  });

  it("scrolls through a thousand groups of eight, and loads more", async () => {
    const many = Array.from({ length: 1500 }, (_, i) =>
      group(i, `Task ${i}`, [0, 0, 0, 0, 1, 1, 1, (i % 10) / 10], () => "trained"),
    );
    const groups: Story["groups"] = (after) =>
      after === null ? { body: listOf(many.slice(0, 1000), true) } : { body: listOf(many.slice(Number(after) + 1)) };
    const page = await open({ ...FINISHED, groups });
    await expect.poll(() => lines(page).count()).toBe(1000);
    const slowest = (await page.evaluate(`(async () => {
      let slowest = 0, before = performance.now();
      for (let i = 0; i < 60; i++) {
        scrollBy(0, 400);
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        slowest = Math.max(slowest, now - before);
        before = now;
      }
      return slowest;
    })()`)) as number;
    expect(slowest).toBeLessThan(500);
    await page.getByRole("button", { name: "Load 1,000 more" }).click();
    await expect.poll(() => lines(page).count()).toBe(1500);
    await page.getByLabel("Text in the task").fill("Task 1499");
    await expect.poll(() => lines(page).count()).toBe(1);
  });

  it("shows a try as it was sent, and leads through its group", async () => {
    bench.announce(/404/);
    const page = await open(FINISHED);
    await lines(page).nth(2).locator(".reward-bars > a").nth(2).click();
    await page.getByRole("heading", { name: "Group 2, try 3 of 8" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/jobs/${ID}/2/2`);
    await page.getByText("advantage 2.5").waitFor();
    await page.locator(".turns").getByText("A cod 2.").waitFor();
    await page.getByText('look({"at":"sea"})').waitFor();
    expect(await page.getByText("Hm, fish.").isVisible()).toBe(false);
    await page.getByText("Reasoning").click();
    expect(await page.getByText("Hm, fish.").isVisible()).toBe(true);
    for (const text of ['"difficulty": 2', '"words": 3', '"a line"', '"TimeoutError"'])
      await page.getByText(text).waitFor();
    await page.keyboard.press("[");
    await page.getByRole("heading", { name: "Group 2, try 2 of 8" }).waitFor();
    for (const number of [3, 4, 5, 6, 7, 8]) {
      await page.keyboard.press("]");
      await page.getByRole("heading", { name: `Group 2, try ${number} of 8` }).waitFor();
    }
    await page.getByText("it has 9,000 tokens").waitFor();
    await page.getByText("The trainer kept no numbers for it.").waitFor();
    expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
    await page.getByRole("link", { name: "Job 8f2c0000" }).click();
    await page.getByText("COMPLETED").waitFor();
  });

  it("colours the tokens of a try, tells their numbers, and compares it with another try", async () => {
    const page = await open(FINISHED, "/2/2?colour=gradient");
    const script = `[...document.querySelectorAll(".token")].map((one) => one.style.getPropertyValue("--tint"))`;
    const tints = () => page.evaluate(script);
    await expect.poll(tints).toEqual(["", "var(--cold)", "var(--heat)", "var(--cold)"]);
    await page.getByLabel("trained", { exact: true }).check();
    await expect.poll(tints).toEqual(["", "var(--heat)", "var(--heat)", "var(--heat)"]);
    expect(new URL(page.url()).search).toBe("?colour=mask");
    await page.locator(".tokens").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.getByText("trained, logprob −3, ratio 1.25, gradient −0.2").waitFor();
    await page.getByLabel("Difference to").selectOption("try 5");
    await expect.poll(() => page.locator("del").textContent()).toBe(" 4.");
    expect(await page.locator("ins").textContent()).toBe(" 2.");
    expect(new URL(page.url()).search).toBe("?colour=mask&diff=4");
  });

  it("shows a try accessibly, in both themes and on a narrow screen", async () => {
    for (const options of [{}, { theme: "dark" }, { width: 360 }]) {
      const page = await open(FINISHED, "/2/2?diff=4&colour=ratio", options);
      await page.locator("ins").waitFor();
      await page.locator(".tokens").first().focus();
      expect(await seriousFindings(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBe(0);
    }
  });

  it("is accessible, in both themes and on a narrow screen", async () => {
    for (const options of [{}, { theme: "dark" }, { width: 360 }]) {
      const page = await open(FINISHED, "", options);
      await page.getByText("nothing to learn").waitFor();
      await page.getByText("Left out, and why").click();
      await page.getByText("Configuration, as the server understood it").click();
      expect(await seriousFindings(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBe(0);
    }
  });
});
