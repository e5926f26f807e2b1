// Tools of MCP servers in a chat: chosen in the settings, called by the model, run by the server that the operator lists.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { FakeMcpServer } from "../support/mcp-server.ts";
import { API_KEY, startTestServer, type TestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings } from "./browser.ts";

inBrowser("tools of MCP servers", (bench) => {
  let tools: FakeMcpServer;
  let server: TestServer;
  beforeAll(async () => {
    tools = await FakeMcpServer.start();
    server = await startTestServer({ config: { mcpServer: [`sea=${tools.url}`] } });
  });
  afterAll(async () => {
    await server.close();
    await tools.close();
  });
  const openWith = async (tool: string) => {
    const page = await bench.open(server.url, { key: API_KEY });
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    await page.getByText("Tools", { exact: true }).click();
    await page.getByText("Tools of sea").click();
    await page.getByRole("checkbox", { name: new RegExp(`^${tool}( |$)`) }).check();
    return page;
  };
  const callOf = (name: string, args: object) =>
    `say:<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
  const ask = async (page: Page, text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const newest = (page: Page) => page.getByRole("article", { name: /^Answer 1 / });
  const isIdle = (page: Page) => page.getByRole("button", { name: "Send", exact: true }).waitFor();

  it("are called by themselves, and the conversation goes on", async () => {
    const page = await openWith("repeat");
    const bodies: { tools: { function: { name: string } }[]; messages: object[] }[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/chat/completions")) bodies.push(request.postDataJSON());
    });
    expect(await seriousFindings(page)).toEqual([]);
    // the fake model obeys what is behind "say:"; here only the result of the tool spells it
    await ask(page, 'say:<tool_call>{"name": "repeat", "arguments": {"text": "\\u0073ay:Waves."}}</tool_call>');
    await newest(page).getByText("Waves.", { exact: true }).waitFor();
    await isIdle(page);
    expect(tools.calls.at(-1)).toEqual({ name: "repeat", arguments: { text: "say:Waves." } });
    expect(bodies[0]!.tools.map((tool) => tool.function.name)).toEqual(["repeat"]);
    expect(bodies[1]!.messages.at(-1)).toEqual({ role: "tool", tool_call_id: "call-1", content: "say:Waves." });
    // it is a setting of the chat, and the call is still there
    await page.reload();
    await page.getByRole("group").filter({ hasText: "say:Waves." }).first().waitFor();
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    expect(await page.getByLabel("Offer repeat").isChecked()).toBe(true);
  });

  it("have names that a request allows", async () => {
    const page = await openWith("look_up");
    await ask(page, callOf("look_up", {}));
    await page.getByText("nothing there").first().waitFor();
    expect(tools.calls.at(-1)).toEqual({ name: "look.up", arguments: {} });
  });

  it("are stopped by Escape while they run, and can be answered by hand", async () => {
    const page = await openWith("slow");
    await ask(page, callOf("slow", {}));
    await page.getByText("sea is asked…").waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.keyboard.press("Escape");
    await isIdle(page);
    await page.locator(".tool-results").getByLabel("Result of slow").fill("say:By hand.");
    await page.getByRole("button", { name: "Give the result" }).click();
    await newest(page).getByText("By hand.", { exact: true }).waitFor();
  });

  it("say why they could not be called, and are asked once more by a button", async () => {
    bench.announce(/502/);
    const page = await openWith("flood");
    await ask(page, callOf("flood", {}));
    await page.getByRole("alert").filter({ hasText: "The MCP server sea sent more than 1 MiB." }).waitFor();
    const before = tools.calls.length;
    await page.getByRole("button", { name: "Ask sea" }).click();
    await expect.poll(() => tools.calls.length).toBe(before + 1);
  });
});
