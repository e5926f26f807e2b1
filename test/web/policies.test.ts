// The pages of policies in a browser, on a tiny model with real gradients: live steps and jobs, rolling back, deleting.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { FlywheelClient } from "../../src/client/client.ts";
import { loadConfig } from "../../src/config/load.ts";
import { LLAMA } from "../fakes/training-service.ts";
import { shared } from "../wire/shared-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";

const KEY = "key";
const data = mkdtempSync(join(tmpdir(), "flywheel-policies-"));
afterAll(() => rmSync(data, { recursive: true, force: true }));

inBrowser("the pages of policies", (bench) => {
  const server = shared(() =>
    startServer(
      {
        ...loadConfig({ env: {} }),
        ...{ port: 0, data, apiKey: [KEY], logLevel: "error", model: LLAMA, servedModelName: ["tiny"] },
        ...{ dtype: "int8", threads: 1, loraRank: 4, loraAlpha: 8 },
      },
      loadModel,
      [createTraining],
    ),
  );
  const client = () => new FlywheelClient({ baseUrl: server.url, apiKey: KEY });

  it("registers a policy, and shows its job and its new step as they happen", async () => {
    const page = await bench.open(`${server.url}/policies`, { key: KEY });
    await page.getByText("None yet.").waitFor();
    await page.getByLabel("new policy").fill("agent");
    await page.getByRole("button", { name: "Register" }).click();
    await page.getByRole("link", { name: "agent" }).click();
    await page.getByRole("heading", { name: "agent" }).waitFor();
    const id = decodeURIComponent(new URL(page.url()).pathname.split("/").at(-1)!);

    const messages = [{ role: "user", content: "hello" }];
    const { choices } = await client().chat({ model: "agent", messages, n: 4, max_tokens: 4, temperature: 1, seed: 1 });
    const trajectories = choices.map((choice, i) => ({ messages_and_choices: [...messages, choice], reward: i }));
    await client().submit(id, [{ trajectories }]);
    const jobs = page.getByRole("region", { name: "Jobs" });
    await jobs.getByText("0 → 1").waitFor();
    await jobs.getByText(/✓/).waitFor();
    await jobs.getByText("4 trained").waitFor();
    const steps = page.getByRole("region", { name: "Steps" });
    await steps.getByRole("row").filter({ hasText: "newest" }).getByText("1", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Curves" }).getByText("entropy").waitFor();
    expect(await seriousFindings(page)).toEqual([]);

    await steps.getByRole("button", { name: "Roll back to step 0" }).click();
    await steps.getByText("Step 2 gets the weights of step 0.").waitFor();
    await steps.getByRole("button", { name: "No" }).click();
    expect(await client().latestStep(id)).toBe(1);
    await steps.getByRole("button", { name: "Roll back to step 0" }).click();
    await steps.getByRole("button", { name: "Yes, roll back" }).click();
    await steps.getByRole("row").filter({ hasText: "newest" }).getByText("2", { exact: true }).waitFor();
  });

  it("filters, fits 360 pixels, and asks before it deletes", async () => {
    await client().register({ project: "p", name: "other", base_model: "tiny" });
    const page = await bench.open(`${server.url}/policies?filter=oth`, { key: KEY, width: 360, theme: "dark" });
    await page.getByRole("link", { name: "other" }).waitFor();
    expect(await page.getByRole("link", { name: "agent" }).count()).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
    expect(await sidewaysScroll(page)).toBe(0);
    await page.getByRole("link", { name: "other" }).click();
    await page.getByRole("button", { name: "Delete other" }).click();
    expect(await sidewaysScroll(page)).toBe(0);
    await page.getByRole("button", { name: "Yes, delete" }).click();
    await page.getByRole("heading", { name: "Policies" }).waitFor();
    await expect.poll(() => page.getByRole("link", { name: "other" }).count()).toBe(0);
  });
});
