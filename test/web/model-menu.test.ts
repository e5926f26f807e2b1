// The menu of models: what each is, how large, and whether it is loaded.
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";
import { answers, groupOf, KEY, type LearningServer, startLearningServer } from "./learning-server.ts";

inBrowser("the menu of models", (bench) => {
  const server = shared<LearningServer>(startLearningServer);

  it("tells size and state, and finds by a part of the name", async () => {
    const { id } = await server.register("agent");
    const choices = await answers(server.client, "agent", "hello", 4);
    await server.client.train(id, [groupOf("hello", choices, [0, 1, 2, 3])]);
    await server.register("other");
    const page = await bench.open(server.url, { key: KEY });
    await page.getByRole("button", { name: "Model 1: tiny" }).click();
    const menu = page.getByRole("dialog", { name: "Models" });
    await menu.getByText(/^base model · [\d.]+ [MB] parameters · int8 · loaded$/).waitFor();
    await menu.getByText(/^policy · step 1 · [\d.]+ [kMG]?B · loaded/).waitFor();
    await menu.getByText(/^policy · step 0 · /).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.keyboard.type("AGE");
    await expect.poll(() => menu.getByRole("button").count()).toBe(2); // the policy, and the typed name
    await menu.getByRole("button", { name: "agent" }).first().click();
    await page.getByRole("button", { name: "Model 1: agent" }).waitFor();
    // a step of a policy is compared with its beginning
    await page.getByRole("button", { name: "Model 1: agent" }).click();
    await page.keyboard.type("agent@1");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "+ compare" }).click();
    await page.getByRole("button", { name: "Model 2: agent@0" }).waitFor();
  });
});
