// The page of one rollout in a browser, with the record of a real job of a tiny model.
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { number } from "../../web/format.ts";
import { shared } from "../support/shared-server.ts";
import { inBrowser } from "./browser.ts";
import { groupOf, KEY, type LearningServer, startLearningServer, storyGroups } from "./learning-server.ts";

interface DryTry {
  group: number;
  trajectory: number;
  advantage: number;
  sequences: { tokens: number[]; mask: number[]; logprobs: (number | null)[] }[];
}

interface Numbers {
  sequences: { positions: number[]; values: Record<string, number[]> }[];
}

interface Scores {
  choices: { logprobs: { token_logprobs: number[] } }[];
}

inBrowser("the page of a rollout", (bench) => {
  const server = shared<LearningServer>(startLearningServer);
  let job: string;
  beforeAll(async () => {
    const { id } = await server.register("agent");
    const config = { learning_rate: 1e-3, grad_accumulation_sequences: 4 };
    job = (await server.client.train(id, await storyGroups(server.client, "agent"), { config })).id;
  });

  const open = (path: string) => bench.open(`${server.url}/jobs/${job}${path}`, { key: KEY });
  const ask = async <Answer>(path: string, body?: object): Promise<Answer> => {
    const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
    const init = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${server.url}/v1/preview/training-jobs${path}`, init);
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  };
  const scoresOf = async (body: object): Promise<number[]> => {
    const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const reply = (await (await fetch(`${server.url}/v1/completions`, init)).json()) as Scores;
    return reply.choices[0]!.logprobs.token_logprobs;
  };
  /** The rollout as a dry run of the same data tells it: not from the record that the page reads. */
  const dryRun = async (group: number, trajectory: number) => {
    const { trajectories } = await ask<{ trajectories: DryTry[] }>("", { from_job: job, dry_run: true });
    return trajectories.find((one) => one.group === group && one.trajectory === trajectory)!;
  };

  it("shows a rollout as it was sent, and leads through its group", async () => {
    bench.announce(/404/);
    const page = await open("");
    const bars = page.locator(".long-list > li").nth(2).locator(".reward-bars");
    const third = { x: ((await bars.boundingBox())!.width * 2.5) / 8, y: 5 };
    await bars.hover({ position: third });
    expect(await bars.getAttribute("title")).toMatch(/^rollout 3: reward [\d.]+, trained$/);
    await bars.click({ position: third });
    await page.getByRole("heading", { name: "Group 2, rollout 3 of 8" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/jobs/${job}/2/2`);
    await page.locator(".turns").getByText("A cod.").waitFor();
    await page.getByText("<img src=x onerror=").waitFor();
    await page.getByText('look({"at":"sea"})').waitFor();
    expect(await page.getByText("Hm, fish.").isVisible()).toBe(false);
    await page.getByText("Reasoning").click();
    expect(await page.getByText("Hm, fish.").isVisible()).toBe(true);
    for (const text of ['"difficulty": 2', '"words": 3', '"a line"', '"TimeoutError"'])
      await page.getByText(text).waitFor();
    await page.keyboard.press("[");
    await page.getByRole("heading", { name: "Group 2, rollout 2 of 8" }).waitFor();
    for (const place of [3, 4, 5, 6, 7, 8]) {
      await page.keyboard.press("]");
      await page.getByRole("heading", { name: `Group 2, rollout ${place} of 8` }).waitFor();
    }
    await page.getByText("too_long", { exact: true }).waitFor();
    await page.getByText(/longer than 512 tokens/).waitFor();
    expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
    await page.getByRole("link", { name: `Job ${job.slice(0, 8)}` }).click();
    await page.getByText("COMPLETED").waitFor();
  });

  /** Of every token its colour, as signed percent of the full colour: 0 for none. */
  const colours = (page: Page) =>
    page.evaluate(`[...document.querySelectorAll(".token")].map(({ style }) => {
      const share = Number.parseInt(style.getPropertyValue("--share") || "0");
      return style.getPropertyValue("--tint").includes("cold") ? -share : share;
    })`);
  const shareOf = (heat: number | null) => {
    const clamped = heat === null ? 0 : Math.max(-1, Math.min(1, heat));
    return Math.abs(clamped) < 0.02 ? 0 : Math.sign(clamped) * Math.round(Math.abs(clamped) * 70);
  };

  it("colours tokens by the numbers of the dry run and of the trainer", async () => {
    const dry = await dryRun(0, 0);
    const [{ tokens, mask, logprobs }] = dry.sequences as [DryTry["sequences"][number]];
    expect(mask).toContain(0);
    expect(mask).toContain(1);
    expect(dry.advantage).toBeLessThan(0);
    const page = await open("/0/0");
    await expect.poll(() => page.locator(".token").count()).toBe(tokens.length);
    expect(await colours(page)).toEqual(mask.map((bit) => (bit === 1 ? 35 : 0)));
    await page.getByText(`advantage ${number(dry.advantage)}`).waitFor();
    const choose = (name: string) => page.getByLabel(name, { exact: true }).check();
    await choose("log-probability");
    expect(new URL(page.url()).search).toBe("?colour=logprob");
    await expect
      .poll(() => colours(page))
      .toEqual(logprobs.map((value) => shareOf(value === null ? null : -value / 6)));
    await choose("advantage");
    await expect.poll(() => colours(page)).toEqual(mask.map((bit) => (bit === 1 ? -70 : 0)));

    // Of this rollout there is no gradient in a dry run; the trainer kept it.
    const numbers = await ask<Numbers>(`/${job}/groups/0/trajectories/0/tokens`);
    const { positions, values } = numbers.sequences[0]!;
    expect(positions).toEqual(mask.flatMap((bit, i) => (bit === 1 ? [i] : [])));
    const largest = Math.max(...values.gradient!.map(Math.abs));
    await choose("what the gradient asked");
    const asked = mask.map((_, i) =>
      positions.includes(i) ? -values.gradient![positions.indexOf(i)]! / largest : null,
    );
    await expect.poll(() => colours(page)).toEqual(asked.map(shareOf));
    // a rollout below its group's mean is made less likely
    expect(asked.every((value) => value === null || value <= 0)).toBe(true);
  });

  it("tells the numbers of a token to the keyboard, and compares a rollout with another", async () => {
    const { positions, values } = (await ask<Numbers>(`/${job}/groups/0/trajectories/7/tokens`)).sequences[0]!;
    const { logprobs } = (await dryRun(0, 7)).sequences[0]!;
    const page = await open("/0/7?colour=ratio");
    await page.getByRole("listbox").focus();
    for (let at = 0; at < positions[0]!; at++) await page.keyboard.press("ArrowRight");
    await page.getByText(`trained, logprob ${number(logprobs[positions[0]!]!)}`).waitFor();
    await page.getByText(`ratio ${number(values.ratio![0]!)}`).waitFor();
    await page.getByLabel("Difference to").selectOption("rollout 1");
    await page.locator("del").first().waitFor();
    const [mine, other] = await Promise.all([dryRun(0, 7), dryRun(0, 0)]);
    const replyOf = ({ sequences: [one] }: DryTry) => one!.tokens.filter((_, i) => one!.mask[i] === 1);
    expect(replyOf(mine)).not.toEqual(replyOf(other));
    expect(await page.locator("ins").count()).toBeGreaterThan(0);
    expect(new URL(page.url()).search).toBe("?colour=ratio&diff=0");
  });

  it("replays a rollout bit for bit under its step, and shows what another step thinks of it", async () => {
    const { logprobs, mask } = (await dryRun(0, 7)).sequences[0]!;
    const total = mask.filter((bit) => bit === 1).length;
    const page = await open("/0/7");
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByText(`identical ✓ ${total}/${total}`).waitFor();
    expect(new URL(page.url()).search).toBe("?under=0");

    await page.getByRole("combobox", { name: "Under step" }).selectOption("1");
    const under = page.getByRole("region", { name: "Sequence 1 under step 1" });
    await under.getByText(new RegExp(`of ${total} tokens are likelier than when they were sampled`)).waitFor();
    const changed = /changed by (.*)\.$/.exec((await under.getByRole("status").textContent())!)![1]!;
    const body = { model: "agent@1", prompt: (await dryRun(0, 7)).sequences[0]!.tokens, max_tokens: 0, echo: true };
    const scored = await scoresOf({ ...body, logprobs: 0 });
    const sum = mask.reduce((all, bit, i) => all + (bit === 1 ? scored[i]! - logprobs[i]! : 0), 0);
    expect(changed).toBe(number(sum));
    expect(sum).toBeGreaterThan(0); // it was the best of its group
    await page.reload();
    await under.getByText(/tokens are likelier/).waitFor();
  });

  it("says which token of a replay differs first, and what may be the reason", async () => {
    // sampled with a constraint, so the probabilities are those over the tokens it left
    const messages = [{ role: "user", content: "yes or no?" }];
    const sampling = { n: 2, temperature: 1, seed: 1, structured_outputs: { choice: ["yes", "no"] } };
    const { choices } = await server.client.chat({ model: "agent@0", messages, ...sampling });
    const { id } = await server.register("constrained");
    const groups = [groupOf("yes or no?", choices, [0, 1])];
    const { id: other } = await server.client.train(id, groups);
    const page = await bench.open(`${server.url}/jobs/${other}/0/0?under=0`, { key: KEY });
    await page.getByText(/^0\/\d+; token \d+: ln /).waitFor();
    await page.getByText(/a constraint had left fewer tokens/).waitFor();
  });

  it("shows the tokens of a rollout whose advantage is zero", async () => {
    const dry = await dryRun(1, 0);
    const page = await open("/1/0");
    await page.getByText("zero_advantage", { exact: true }).waitFor();
    await expect.poll(() => page.locator(".token").count()).toBe(dry.sequences[0]!.tokens.length);
    expect(await colours(page)).toEqual(dry.sequences[0]!.mask.map((bit) => (bit === 1 ? 35 : 0)));
    await page.getByText(/^It was not trained, so there are no numbers/).waitFor();
  });

  it("never scores one rollout with the tokens of another while the next is on its way", async () => {
    const page = await open("/0/6?asked=yes");
    const told = page.getByRole("region", { name: "Asked and got" }).locator("p").first();
    await told.getByText(/tokens moved as the gradient asked/).waitFor();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.route("**/trajectories/7", async (route) => {
      await held;
      await route.continue();
    });
    const isNext = (path: string) => path.endsWith("/trajectories/7");
    await page.keyboard.press("]");
    await expect.poll(() => asked.some(isNext)).toBe(true);
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Group 0, rollout 7 of 8");
    await told.waitFor();
    // the numbers and scores of the next one are asked for when its tokens are here
    expect(asked.filter((path) => path.endsWith("/trajectories/7/tokens") || path === "/v1/completions")).toEqual([]);
    release();
    await page.getByRole("heading", { name: "Group 0, rollout 8 of 8" }).waitFor();
    await told.getByText(/tokens moved as the gradient asked/).waitFor();
  });

  it("trains a job once more and makes the same step", async () => {
    const before = [];
    for await (const { name } of server.client.models()) before.push(name);
    const page = await open("");
    await page.getByRole("button", { name: "Repeat and compare" }).click();
    await page.getByText(/identical ✓ SHA-256 [0-9a-f]{16}/).waitFor({ timeout: 300_000 });
    const after = [];
    for await (const { name } of server.client.models()) after.push(name);
    expect(after).toEqual(before); // the fork is gone
  });
});
