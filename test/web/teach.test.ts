// Teaching in the browser, with the bundled model and real gradients: eight answers are rated by hand, a step is trained, and
// it answers beside the old one, asked the same with the same seed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import { shared } from "../support/shared-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";

const data = mkdtempSync(join(tmpdir(), "flywheel-teach-"));
afterAll(() => rmSync(data, { recursive: true, force: true }));

inBrowser("teaching in the browser", (bench) => {
  const server = shared(() => {
    const flags = { model: "bundled", port: 0, data, apiKey: ["k"], logLevel: "error" };
    return startServer(loadConfig({ env: {}, flags }), loadModel, [createTraining]);
  });

  it("makes short answers likelier when short answers are rated best", async () => {
    const query = "n=8&seed=1&temperature=1&top_p=1&max_tokens=40&panel=teach";
    const page = await bench.open(`${server.url}/?${query}`, { key: "k" });
    await page.getByLabel("Message", { exact: true }).fill("Tell me about the sea.");
    await page.getByRole("button", { name: "Send" }).click();
    const train = page.getByRole("button", { name: "Train", exact: true });
    await page.getByRole("button", { name: "Send" }).waitFor();
    const answers = (step: number) =>
      page
        .getByRole("region", { name: `my-agent@${step}` })
        .locator("article .markdown")
        .allTextContents();
    const before = await page.locator("article .markdown").allTextContents();
    expect(before).toHaveLength(8);

    expect(await train.isDisabled()).toBe(true); // nothing is rated yet
    const wanted = before.map((_text, i) => i).sort((a, b) => before[a]!.length - before[b]!.length || a - b);
    await rank(page, wanted, before);

    await page.getByLabel("learning rate").fill("0.001");
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByText("What training would see").waitFor();
    expect(await page.locator(".verdicts tbody tr").count()).toBe(8);
    const advantages = await page.locator(".verdicts tbody td:nth-child(3)").allTextContents();
    expect(advantages[wanted[0]!]).not.toContain("−");
    expect(advantages[wanted[7]!]).toContain("−");

    await train.click();
    await page
      .getByText("my-agent is at step 1. It answers beside step 0, with the same seed.")
      .waitFor({ timeout: 500_000 });
    await expect.poll(async () => (await answers(1)).filter((text) => text !== "").length).toBe(8);
    await expect.poll(() => page.getByRole("button", { name: "Stop" }).count()).toBe(0);
    const after = await answers(1);
    const length = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);
    expect(length(after)).toBeLessThan(length(before) * 0.8);

    // The second lesson is about what step 1 said, and trains it.
    const submitted = page.waitForRequest(
      (request) => /training-jobs$/.test(request.url()) && request.method() === "POST",
    );
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    await page.getByLabel("temperature", { exact: true }).fill("2"); // so that step 1 says more than one thing
    await page.getByRole("button", { name: "Close the settings" }).click();
    await page.getByLabel("Message", { exact: true }).fill("Tell me about a dog.");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    const taught = (await answers(1)).slice(-8);
    const longest = taught.map((_text, i) => i).sort((a, b) => taught[b]!.length - taught[a]!.length || a - b);
    await expect.poll(() => train.isDisabled()).toBe(true);
    await rank(page, longest, taught);
    await train.click();
    const { trajectory_groups } = (await submitted).postDataJSON();
    const said = trajectory_groups[0].trajectories.map(
      (one: { initial_policy_version: number; messages_and_choices: { message: { content: string } }[] }) => [
        one.initial_policy_version,
        one.messages_and_choices.at(-1)!.message.content,
      ],
    );
    expect(said.map(([version]: [number]) => version)).toEqual(said.map(() => 1));
    expect(said.length).toBe(8);
    await page.getByText("my-agent is at step 2. It answers beside step 1").waitFor({ timeout: 500_000 });
    await page.getByRole("button", { name: "Send" }).waitFor();

    await page.getByRole("button", { name: "Time machine" }).click();
    await expect.poll(() => page.locator(".heat-grid tbody tr").count()).toBe(3);
    await expect.poll(() => page.locator(".heat-grid .heat").count()).toBeGreaterThan(10);
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("region", { name: "my-agent@2" }).getByRole("button", { name: "Replay" }).first().click();
    await page.getByText(/identical ✓/).waitFor();

    await page.getByRole("button", { name: "Teach", exact: true }).click();
    await page.getByRole("link", { name: "See what it learned from." }).click();
    await page.getByText("COMPLETED").waitFor();
    await page.getByText("from step 1 to step 2").waitFor();
    await page.getByText(/Tell me about (a dog|the sea)\./).waitFor();
    const bars = page.locator(".reward-bars path");
    expect((await bars.getAttribute("d"))!.match(/M/g)).toHaveLength(8);
  });
});

/** Puts answers in this order, the best first: one that is not rated comes last when it is moved up. The same are one line. */
async function rank(page: Page, wanted: readonly number[], texts: readonly string[]): Promise<void> {
  const lines = wanted.filter((answer) => texts.indexOf(texts[answer]!) === answer);
  for (const answer of lines) await page.getByRole("button", { name: `Move answer ${answer + 1} up` }).click();
}
