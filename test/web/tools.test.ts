// Tools of a chat: the model calls, the results are set or typed, and the conversation goes on.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";

const CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>';

inBrowser("tools", (bench) => {
  const server = shared(startTestServer);
  const openWithTool = async () => {
    const page = await bench.open(server.url, { key: API_KEY });
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    await page.getByText("Tools", { exact: true }).click();
    await page.getByRole("button", { name: "get_weather" }).click();
    return page;
  };
  const ask = async (page: Page, text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const newest = (page: Page) => page.getByRole("article", { name: /^Answer 1 / });

  it("get a result that is set, and the conversation goes on by itself", async () => {
    const page = await openWithTool();
    const bodies: { messages: { role: string }[]; tools: unknown[] }[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) bodies.push(request.postDataJSON());
    });
    await page.getByLabel("Result of get_weather").fill("say:Sunny.");
    await ask(page, `say:${CALL}`);
    await newest(page).getByText("Sunny.", { exact: true }).waitFor();
    expect(bodies.map(({ messages }) => messages.map(({ role }) => role))).toEqual([
      ["user"],
      ["user", "assistant", "tool"],
    ]);
    expect(bodies[1]!.messages[1]).toMatchObject({
      content: null,
      tool_calls: [
        { id: "call-1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
      ],
    });
    expect(bodies[1]!.messages[2]).toEqual({ role: "tool", tool_call_id: "call-1", content: "say:Sunny." });
    expect(bodies[1]!.tools).toHaveLength(1);
    // the call is folded, and is still there after another question and a reload
    await ask(page, "say:Thanks.");
    await newest(page).getByText("Thanks.", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await page.reload();
    const call = page.getByRole("group").filter({ hasText: "get_weather" });
    await call.locator("summary").click();
    await call.getByText('"city": "Paris"').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });

  it("goes on as often as it may", async () => {
    const page = await openWithTool();
    let requests = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) requests += 1;
    });
    await page.getByLabel("Result of get_weather").fill(`say:${CALL}`);
    await page.getByLabel("turns by itself").fill("2");
    await ask(page, `say:${CALL}`);
    await page.getByRole("button", { name: "Give the result" }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    expect(requests).toBe(3);
  });

  it("wait for a result that is typed", async () => {
    const page = await openWithTool();
    await page.getByLabel("I type it").check();
    await ask(page, `say:${CALL}`);
    await page.locator(".tool-results").getByLabel("Result of get_weather").fill("say:Rain.");
    await page.getByRole("button", { name: "Give the result" }).click();
    await newest(page).getByText("Rain.", { exact: true }).waitFor();
  });

  it("are not sent while they are wrong", async () => {
    const page = await openWithTool();
    await page.getByLabel("parameters, as a JSON schema").fill("{");
    await page.getByText("Parameters of get_weather: This is not JSON").waitFor();
    await ask(page, "say:hello");
    await page.getByRole("alert").filter({ hasText: "Parameters of get_weather" }).waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("say:hello");
  });
});
