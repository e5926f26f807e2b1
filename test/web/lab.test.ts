// The loss lab in a browser, over a job that was really trained. What the page shows must be what the server recorded, and what
// the trainer's own functions give.
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import type { GroupRow, TrajectoryRow } from "../../src/api/training/record.schema.ts";
import type { TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import { policyLoss } from "../../src/training/gradient/loss.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";
import { get, KEY, realServer, trainJob } from "./real-job.ts";

interface TokenNumbers {
  sequences: { positions: number[]; values: Record<string, number[]> }[];
}

inBrowser("the loss lab", (bench) => {
  const server = realServer();
  let job: TrainingJob;
  let policy: TrainableModel;
  let groups: GroupRow[];
  beforeAll(async () => {
    // Several gradient steps of two sequences, so that later ones see ratios other than 1.
    const config = { learning_rate: 2e-3, grad_accumulation_sequences: 2 };
    ({ job, policy } = await trainJob(server.url, config));
    groups = (await get<{ data: GroupRow[] }>(server.url, `/preview/training-jobs/${job.id}/groups`)).data;
  });

  const open = (query: string, options = {}) =>
    bench.open(`${server.url}/jobs/${job.id}/lab${query}`, { key: KEY, ...options });
  const values = (page: Page, cells: string) =>
    page.evaluate<number[]>(
      `[...document.querySelectorAll(${JSON.stringify(`${cells} data`)})].map(({ value }) => Number(value))`,
    );
  const numbersOf = (group: number, trajectory: number) => {
    const path = `/preview/training-jobs/${job.id}/groups/${group}/trajectories/${trajectory}`;
    return Promise.all([get<TrajectoryRow>(server.url, path), get<TokenNumbers>(server.url, `${path}/tokens`)]);
  };
  /** Relative to the largest: the trainer keeps float32. */
  const expectClose = (shown: readonly number[], recorded: readonly number[]) => {
    const largest = Math.max(...recorded.map(Math.abs));
    expect(shown).toHaveLength(recorded.length);
    for (const [i, value] of recorded.entries()) expect(Math.abs(shown[i]! - value)).toBeLessThan(1e-6 * largest);
  };

  it("shows the advantages, weights, ratios and gradients that the server recorded", async () => {
    const page = await open("");
    let farthest = 0;
    for (const [row, { group, trajectories }] of [groups[0]!, groups[2]!].entries()) {
      if (row > 0) await page.getByLabel(/^group/).fill(String(group));
      for (const { trajectory } of trajectories) {
        await page.getByRole("button", { name: `rollout ${trajectory + 1}`, exact: true }).click();
        await page.getByText(`numbers of group ${group}, rollout ${trajectory + 1}`).waitFor();
        const [record, { sequences }] = await numbersOf(group, trajectory);
        const { ratio, gradient } = sequences[0]!.values;
        expectClose(await values(page, ".lab-tokens td:nth-child(2)"), ratio!);
        expectClose(await values(page, ".lab-tokens td:nth-child(5)"), gradient!);
        farthest = Math.max(farthest, ...ratio!.map((value) => Math.abs(value - 1)));
        const weights = await values(page, ".lab-group td:nth-child(5)");
        expect(weights[trajectory]).toBeCloseTo(record.weight!, 12);
      }
      const advantages = await values(page, ".lab-group td:nth-child(3)");
      expect(advantages).toEqual(trajectories.map(({ advantage }) => advantage));
    }
    expect(farthest).toBeGreaterThan(0.01);
  });

  it("computes what the trainer's functions give with another algorithm and ε", async () => {
    const page = await open("?at=2.1");
    await page.getByLabel("loss_fn").selectOption("ppo");
    await page.getByLabel("epsilon", { exact: true }).fill("0.001");
    await page.getByLabel("mask_prob_ratio").check();
    await page.getByText("Ratios are clipped to 0.999 … 1").waitFor();
    const [record, { sequences }] = await numbersOf(2, 1);
    const [sequence] = record.sequences;
    const { positions, values: numbers } = sequences[0]!;
    const column = (make: (t: number) => number) => Float64Array.from(positions, (_, t) => make(t));
    const { gradient, ratio } = policyLoss(
      {
        logprobs: column((t) => numbers.new_logprob![t]!),
        oldLogprobs: column((t) => sequence!.logprobs[positions[t]!]!),
        advantages: column(() => record.advantage!),
        weights: column(() => record.weight!),
        sequenceStarts: [0, positions.length],
        ...{ samplerLogprobs: null, referenceLogprobs: null, klMean: null },
        stepTokens: sequence!.gradient_step_tokens!,
      },
      { ...RL_DEFAULTS.loss, algorithm: "ppo", epsilon: 0.001, maskProbRatio: true },
    );
    const clipped = ratio.filter((value) => value < 0.999 || value > 1.001).length;
    await page.getByText(`${clipped} clipped`).waitFor();
    await page.getByText("masked by a rule of the loss").waitFor();
    const masked = gradient.filter((value) => value === 0).length;
    expect(masked).toBeGreaterThan(0);
    expect(await page.locator(".tokens .masked").count()).toBe(masked);
    expect(await values(page, ".lab-tokens td:nth-child(5)")).toEqual([...gradient]);
    expect(gradient).not.toEqual(column((t) => numbers.gradient![t]!));
    // the address has it all
    await expect.poll(() => new URL(page.url()).search).toBe("?at=2.1&loss_fn=ppo&epsilon=0.001&mask_prob_ratio=true");
    await page.reload();
    await page.getByText(`${clipped} clipped`).waitFor();
    await page.getByRole("button", { name: "As the job had them" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("?at=2.1");
  });

  it("takes other rewards, also of rollouts that were left out, and the server agrees", async () => {
    const page = await open("?at=1.0");
    const advantages = () => values(page, ".lab-group td:nth-child(3)");
    await expect.poll(async () => (await advantages())[0]).toBe(0);
    await page.getByLabel("Reward of rollout 1").fill("0.25");
    await page.getByText("numbers of group 1, rollout 1").waitFor();
    await expect.poll(async () => (await advantages())[0]).toBeLessThan(0);
    expect((await advantages())[1]).toBeGreaterThan(0);
    await page.getByLabel("scale_rewards").uncheck();
    await page.getByRole("button", { name: "Try on the server as a dry run" }).click();
    await page.getByText("12 advantages compared with the server's: they differ by 0 at the most").waitFor();
    await page.getByText("12 trained").waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe("?at=1.0&scale_rewards=false&r=1.0%3A0.25");
    await page.getByRole("button", { name: "Take back" }).click();
    await expect.poll(async () => (await advantages())[0]).toBe(0);
  });

  it("scores the reference when a KL penalty is tried", async () => {
    const page = await open("?at=0.1");
    await page.getByText("numbers of group 0, rollout 2").waitFor();
    const before = await values(page, ".lab-tokens td:nth-child(5)");
    await page.getByLabel("kl_penalty_coef", { exact: true }).fill("0.5");
    await expect.poll(() => values(page, ".lab-tokens td:nth-child(5)")).not.toEqual(before);
    await page.getByLabel("KL to the reference").check();
    await page.locator(".tokens").focus();
    await page.keyboard.press("End");
    await page.getByText(/reference_kl/).waitFor();
  });

  it("trains with what was set", async () => {
    const page = await open("?at=0.0&epsilon=0.3&r=0.0:0.5");
    await page.getByRole("button", { name: "train with these" }).click();
    await page.getByText(`This makes a new step of ${policy.name}.`).waitFor();
    await page.getByRole("button", { name: "Yes, train with these" }).click();
    await page.getByText("COMPLETED").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1)!;
    expect(id).not.toBe(job.id);
    const path = `/preview/training-jobs/${id}`;
    expect(await get<TrainingJob>(server.url, path)).toMatchObject({ config: { epsilon: 0.3 } });
    const { data } = await get<{ data: GroupRow[] }>(server.url, `${path}/groups`);
    expect(data[0]!.rewards).toEqual([0.5, ...groups[0]!.rewards.slice(1)]);
  });

  it("tells what the gradient asked and what the step did", async () => {
    const page = await bench.open(`${server.url}/jobs/${job.id}/0/0`, { key: KEY });
    await page.getByRole("button", { name: "Asked and got" }).click();
    const told = page.getByText(/^From step 0 to step 1, \d+ of \d+ tokens moved/);
    await told.waitFor();
    expect(new URL(page.url()).search).toBe("?asked=yes");
    const [record, { sequences }] = await numbersOf(0, 0);
    const [sequence] = record.sequences;
    const { positions, values: numbers } = sequences[0]!;
    const under = async (step: number) => {
      const response = await fetch(`${server.url}/v1/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
        body: JSON.stringify({
          ...{
            model: `${policy.name}@${step}`,
            prompt: sequence!.tokens,
            max_tokens: 0,
            echo: true,
            prompt_logprobs: 1,
          },
        }),
      });
      const { choices } = (await response.json()) as {
        choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[];
      };
      return positions.map((at) => choices[0]!.prompt_logprobs[at]![sequence!.tokens[at]!]!.logprob);
    };
    const [before, after] = [await under(0), await under(1)];
    const got = positions.map((_, t) => after[t]! - before[t]!);
    const asAsked = got.filter((value, t) => -numbers.gradient![t]! * value > 0);
    expect(await told.textContent()).toContain(`${asAsked.length} of ${positions.length} tokens`);
    // The trainer scored the first gradient step's tokens under the same weights as the server.
    if (sequence!.gradient_step === 0) expect(before).toEqual(numbers.new_logprob);
    await page.reload();
    await told.waitFor();
  });

  it("runs a job again without training, and with other settings", async () => {
    const page = await bench.open(`${server.url}/jobs/${job.id}`, { key: KEY });
    await page.getByRole("button", { name: "Again as dry run" }).click();
    await page.getByText("No verdict changes, and no advantage. Nothing was trained.").waitFor();
    await page.getByText("Again with changes").click();
    const config = page.getByLabel("Configuration", { exact: true });
    await config.fill(JSON.stringify({ ...job.config, packed_sequence_length: 1 }));
    await page.getByRole("button", { name: "Dry run with these" }).click();
    await page.getByText("8 verdicts would change").waitFor();
    await page.getByText("trained → too_long").first().waitFor();
    await config.fill("{");
    await page.getByRole("button", { name: "Dry run with these" }).click();
    await page.getByText(/JSON/).waitFor();
    await page.getByRole("link", { name: "Loss lab" }).click();
    await page.getByRole("heading", { name: "Loss lab" }).waitFor();
  });

  it("is accessible, in both themes and on a narrow screen", async () => {
    for (const options of [{}, { theme: "dark" }, { width: 360 }]) {
      const page = await open("?at=0.1&epsilon=0.1&loss_fn=ppo", options);
      await page.getByText("numbers of group 0, rollout 2").click();
      await page.locator(".tokens").focus();
      expect(await seriousFindings(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBe(0);
      await page.goto(`${server.url}/jobs/${job.id}/0/0?asked=yes`);
      await page.getByText(/tokens moved/).waitFor();
      expect(await seriousFindings(page)).toEqual([]);
      expect(await sidewaysScroll(page)).toBe(0);
    }
  });
});
