// The pages of policies in a browser, on a tiny model with real gradients: live steps and jobs, rolling back, deleting.
import { expect, it } from "vitest";
import { FlywheelClient } from "../../src/client/client.ts";
import { shared } from "../support/shared-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";
import { answers, groupOf, KEY, type LearningServer, startLearningServer } from "./learning-server.ts";

inBrowser("the pages of policies", (bench) => {
  const server = shared<LearningServer>(startLearningServer);

  /** Four rollouts, rewarded 0 to 3. */
  const submit = async (id: string, model: string) =>
    server.client.submit(id, [groupOf("hello", await answers(server.client, model, "hello", 4), [0, 1, 2, 3])]);

  it("registers a policy, and shows its job and its new step as they happen", async () => {
    const page = await bench.open(`${server.url}/policies`, { key: KEY });
    await page.getByText("None yet.").waitFor();
    await page.getByText("flywheel train FILE.jsonl --model my-agent").waitFor();
    await page.getByLabel("new policy").fill("agent");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("link", { name: "agent", exact: true }).click();
    await page.getByRole("heading", { name: "agent" }).waitFor();
    const id = decodeURIComponent(new URL(page.url()).pathname.split("/").at(-1)!);

    await submit(id, "agent");
    const jobs = page.getByRole("region", { name: "Jobs", exact: true });
    await jobs.getByText("0 → 1").waitFor();
    await jobs.getByText(/✓/).waitFor();
    await jobs.getByText("4 trained").waitFor();
    const steps = page.getByRole("region", { name: "Steps", exact: true });
    await steps.getByRole("row").filter({ hasText: "newest" }).getByText("1", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Curves" }).getByText("entropy", { exact: true }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);

    await steps.getByRole("button", { name: "Roll back to step 0" }).click();
    await steps.getByText("Step 2 gets the weights of step 0.").waitFor();
    await steps.getByRole("button", { name: "No", exact: true }).click();
    expect(await server.client.latestStep(id)).toBe(1);
    const hasFocus = (name: string) =>
      expect.poll(() => page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe(name);
    await hasFocus("Roll back to step 0");
    await page.keyboard.press("Enter");
    await steps.getByRole("alertdialog").waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("No");
    await page.keyboard.press("Escape");
    await steps.getByRole("alertdialog").waitFor({ state: "detached" });
    await hasFocus("Roll back to step 0");
    await steps.getByRole("button", { name: "Fork step 0" }).click();
    await hasFocus("Name of the fork of step 0");
    await page.keyboard.press("Escape");
    await hasFocus("Fork step 0");
    await steps.getByRole("button", { name: "Roll back to step 0" }).click();
    await steps.getByRole("button", { name: "Yes, roll back" }).click();
    await steps.getByRole("row").filter({ hasText: "newest" }).getByText("2", { exact: true }).waitFor();

    expect(await steps.getByRole("button", { name: "Delete step 2" }).count()).toBe(0); // the newest stays
    await steps.getByRole("button", { name: "Delete step 1" }).click();
    await steps.getByRole("button", { name: "No", exact: true }).click();
    expect(await steps.getByRole("row").count()).toBe(4);
    await steps.getByRole("button", { name: "Delete step 1" }).click();
    await steps.getByRole("button", { name: "Yes, delete" }).click();
    await expect.poll(() => steps.getByRole("row").count()).toBe(3);
    const left = [];
    for await (const { step } of server.client.checkpoints(id)) left.push(step);
    expect(left).toEqual([0, 2]);
  });

  it("shows progress in the list without asking for it", async () => {
    const { id } = await server.register("lively");
    const page = await bench.open(`${server.url}/policies?filter=lively`, { key: KEY });
    const row = page.getByRole("row").filter({ hasText: "lively" });
    await row.getByRole("link", { name: "Chat with lively" }).waitFor();
    const { id: job } = await submit(id, "lively");
    await row.getByText(/✓/).waitFor();
    await row.getByText("1", { exact: true }).waitFor();
    await row.getByText("1.5").waitFor();
    expect((await server.client.job(job)).status).toBe("COMPLETED");
    await row.getByRole("link", { name: "Chat with lively" }).click();
    await expect.poll(() => new URL(page.url()).search).toContain("m=lively");
  });

  it("keeps the view of the curves in the address, and has their numbers as tables", async () => {
    const { id } = await server.register("curved");
    for (let step = 1; step <= 3; step++) {
      await submit(id, "curved");
      await expect.poll(() => server.client.latestStep(id)).toBe(step);
    }
    const page = await bench.open(`${server.url}/policies/${id}`, { key: KEY, theme: "dark" });
    const curves = page.getByRole("region", { name: "Curves" });
    const health = page.getByRole("region", { name: "Health" });
    await health.getByText("0 % of groups all alike").waitFor();
    await health.getByText(/rewarded alike teaches nothing/).waitFor();
    await health.getByText(/^reward flat at 1.5$/).waitFor();
    await curves.getByText("numbers of reward").click();
    const numbers = curves.getByRole("region", { name: "Numbers of reward" });
    await numbers.getByRole("row", { name: "3 1.5" }).waitFor();
    expect(await curves.locator("canvas").count()).toBeGreaterThan(3);
    const drawn = () => page.evaluate("document.querySelector('canvas').toDataURL()");
    const inDark = await drawn();
    await page.emulateMedia({ colorScheme: "light" });
    await expect.poll(drawn).not.toBe(inDark);

    await page.setViewportSize({ width: 360, height: 800 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
    const state = page.getByRole("region", { name: "Jobs", exact: true }).locator("td .chip").first();
    expect((await state.boundingBox())!.height).toBeLessThan(30); // one line
    await curves.getByLabel("gradient steps").check();
    await curves.getByLabel("log scale").check();
    await curves.getByLabel("metrics (regex)").fill("^(loss|kl_old_new)");
    await curves.getByLabel(/^smooth/).fill("0.5");
    await curves.getByText("kl_old_new_k1", { exact: true }).waitFor();
    expect(await curves.getByText("entropy", { exact: true }).count()).toBe(0);
    await page.reload();
    await curves.getByText("kl_old_new_k1", { exact: true }).waitFor();
    expect(await curves.getByLabel("gradient steps").isChecked()).toBe(true);
    expect(await curves.getByLabel("log scale").isChecked()).toBe(true);
    expect(await curves.getByLabel(/^smooth/).inputValue()).toBe("0.5");
    await curves.getByLabel("metrics (regex)").fill("(");
    await curves.getByText("“(” is no regular expression.").waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });

  it("forks and downloads a step", async () => {
    const { id } = await server.register("source");
    const page = await bench.open(`${server.url}/policies/${id}`, { key: KEY, width: 360 });
    const steps = page.getByRole("region", { name: "Steps", exact: true });
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      steps.getByRole("button", { name: "Download the adapter of step 0" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("source-step-0.tar");
    expect(await sidewaysScroll(page)).toBe(0);
    await steps.getByRole("button", { name: "Fork step 0" }).click();
    await steps.getByLabel("Name of the fork of step 0").fill("copy-of-source");
    expect(await sidewaysScroll(page)).toBe(0);
    await steps.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "copy-of-source" }).waitFor();
    await page.getByRole("link", { name: "forked at step 0" }).click();
    await page.getByRole("heading", { name: "source", exact: true }).waitFor();
  });

  it("tells an admin whose policy it is", async () => {
    const reply = await fetch(`${server.url}/v1/tokens`, {
      ...{ method: "POST", headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" } },
      body: JSON.stringify({ name: "ann", scopes: ["inference", "training"], workspace: "team-a" }),
    });
    const { token } = (await reply.json()) as { token: string };
    const ann = new FlywheelClient({ baseUrl: server.url, apiKey: token });
    const { id } = await ann.register({ project: "p", name: "anns", base_model: "tiny" });
    const page = await bench.open(`${server.url}/policies/${id}`, { key: KEY });
    await page.getByText("· workspace team-a").waitFor();
    const own = await bench.open(`${server.url}/policies/${id}`, { key: token });
    await own.getByText("rank 4").waitFor();
    await own.getByText("Steps", { exact: true }).waitFor();
    expect(await own.getByText("workspace").count()).toBe(0);
  });

  it("tells a token without the scope training what it lacks, and asks the server for nothing", async () => {
    const { id } = await server.register("secret");
    const reply = await fetch(`${server.url}/v1/tokens`, {
      ...{ method: "POST", headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" } },
      body: JSON.stringify({ name: "reader", scopes: ["inference"] }),
    });
    const { token } = (await reply.json()) as { token: string };
    for (const path of [
      "/policies",
      `/policies/${id}`,
      "/jobs",
      `/jobs/${id}`,
      `/jobs/${id}/0`,
      `/jobs/${id}/0/0`,
      `/jobs/${id}/lab`,
    ]) {
      const page = await bench.open(server.url + path, { key: token });
      await page.getByText("it lacks the scope training").waitFor();
      expect(await page.getByRole("alert").filter({ hasText: /\w/ }).count()).toBe(0);
      await page.close();
    }
  });

  it("answers an address without a page with a page", async () => {
    bench.announce(/404/);
    const page = await bench.open(`${server.url}/nothing/here`, { key: KEY });
    await page.getByRole("heading", { name: "Nothing here" }).waitFor();
    await page.getByRole("link", { name: "Go to the playground." }).waitFor();
  });

  it("sorts by every column, and has nothing red until it asks", async () => {
    for (const name of ["b-10", "b-9"]) await server.register(name);
    const page = await bench.open(`${server.url}/policies?filter=b-`, { key: KEY });
    const names = () => page.locator("tbody th a").allTextContents();
    await expect.poll(names).toEqual(["b-10", "b-9"]);
    await page.getByRole("button", { name: "name", exact: true }).click();
    await expect.poll(names).toEqual(["b-9", "b-10"]);
    expect(new URL(page.url()).search).toBe("?filter=b-&sort=name");
    expect(await page.getByRole("columnheader").count()).toBe(9);
    expect(await page.getByRole("columnheader").getByRole("button").count()).toBe(8);
    await page.getByRole("link", { name: "b-9", exact: true }).click();
    await page.getByRole("button", { name: "Delete b-9" }).waitFor();
    expect(await page.locator("button.danger").count()).toBe(0);
    await page.getByRole("button", { name: "Delete b-9" }).click();
    expect(await page.locator("button.danger").allTextContents()).toEqual(["Yes, delete"]);
  });

  it("names a loaded step to its whole workspace, and to nobody else", async () => {
    const { id } = await server.register("loaded");
    const choices = await answers(server.client, "loaded", "hello", 4);
    await server.client.train(id, [groupOf("hello", choices, [0, 1, 2, 3])]);
    const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
    const me = (await (await fetch(`${server.url}/v1/me`, { headers })).json()) as { workspace: { name: string } };
    const tokenIn = async (workspace: string) => {
      const body = JSON.stringify({ name: `in-${workspace}`, scopes: ["inference"], workspace });
      const reply = await fetch(`${server.url}/v1/tokens`, { method: "POST", headers, body });
      return ((await reply.json()) as { token: string }).token;
    };
    const own = await bench.open(`${server.url}/serving`, { key: await tokenIn(me.workspace.name) });
    await own.getByText(/^loaded@1 \(\d+ requests?\)$/).waitFor();
    const other = await bench.open(`${server.url}/serving`, { key: await tokenIn("elsewhere") });
    await other
      .getByText(/^a policy of another workspace/)
      .first()
      .waitFor();
    expect(await other.getByText("loaded@1").count()).toBe(0);
  });

  it("says that there is no such policy", async () => {
    bench.announce(/404/);
    const page = await bench.open(`${server.url}/policies/00000000-0000-0000-0000-000000000000`, { key: KEY });
    await page
      .getByRole("alert")
      .filter({ hasText: /There is no model/ })
      .getByRole("link", { name: "All policies" })
      .waitFor();
  });

  it("filters, fits 360 pixels, and asks before it deletes", async () => {
    await server.register("other");
    const page = await bench.open(`${server.url}/policies?filter=oth`, { key: KEY, width: 360, theme: "dark" });
    await page.getByRole("link", { name: "other", exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "agent", exact: true }).count()).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
    expect(await sidewaysScroll(page)).toBe(0);
    await page.getByRole("link", { name: "other", exact: true }).click();
    await page.getByRole("button", { name: "Delete other" }).click();
    expect(await sidewaysScroll(page)).toBe(0);
    await page.getByRole("button", { name: "Yes, delete" }).click();
    await page.getByRole("heading", { name: "Policies" }).waitFor();
    await expect.poll(() => page.getByRole("link", { name: "other", exact: true }).count()).toBe(0);
  });
});
