import { afterEach, beforeEach, expect, it } from "vitest";
import { FakeMcpServer } from "../../test/support/mcp-server.ts";
import { McpFailure, type McpServers } from "../api/serving/mcp-servers.ts";
import { createLog } from "../observe/log.ts";
import { openMcpServers } from "./mcp-servers.ts";

const log = createLog({ level: "error", format: "text" });
const here = new AbortController().signal;
let server: FakeMcpServer;

beforeEach(async () => {
  server = await FakeMcpServer.start();
});
afterEach(() => server.close());

async function open(url = server.url, mostMs = 60_000): Promise<McpServers> {
  return (await openMcpServers([`tools=${url}`], log, { mostMs }))!;
}

it("lists tools of all pages, and calls them in sessions of their own that end", async () => {
  const servers = await open();
  expect(servers.names).toEqual(["tools"]);
  const tools = await servers.tools("tools", here);
  expect(tools.map(({ name }) => name)).toEqual(["repeat", "look.up", "picture", "slow", "flood", "flooding_stream"]);
  expect(tools[0]).toMatchObject({
    description: "Says it again. With care.",
    parameters: { type: "object", required: ["text"] },
  });
  expect(await servers.call("tools", "repeat", { text: "sea" }, here)).toEqual({ content: "sea", isError: false });
  expect(server.calls).toEqual([{ name: "repeat", arguments: { text: "sea" } }]);
  expect(server.begun).toBe(2);
  await expect.poll(() => server.sessions.size).toBe(0);
});

it("names what is no text, and passes on what a tool says about its failure", async () => {
  const servers = await open();
  const { content } = await servers.call("tools", "picture", {}, here);
  expect(content).toBe("a sea\n[image]\nfile:///sea.txt");
  expect(await servers.call("tools", "look.up", {}, here)).toEqual({ content: "nothing there", isError: true });
});

it("says what a server answers against a call", async () => {
  const calling = (await open()).call("tools", "nothing", {}, here);
  await expect(calling).rejects.toThrow(McpFailure);
  await expect(calling).rejects.toThrow(/^The MCP server tools answered: .*Unknown tool: nothing/);
});

it.each(["flood", "flooding_stream"])("ends a session that receives more than 1 MiB: %s", async (tool) => {
  await expect((await open()).call("tools", tool, {}, here)).rejects.toThrow(
    "The MCP server tools sent more than 1 MiB.",
  );
});

it("waits for a server as long as it may, and no longer for a client that left", async () => {
  await expect((await open(server.url, 500)).call("tools", "slow", {}, here)).rejects.toThrow(
    "The MCP server tools took longer than 0.5 s.",
  );
  const gone = new AbortController();
  const calling = (await open()).call("tools", "slow", {}, gone.signal);
  await expect.poll(() => server.calls.length).toBe(2);
  gone.abort();
  await expect(calling).rejects.toThrow("The MCP server tools");
});

it("follows no redirect", async () => {
  const other = await FakeMcpServer.start();
  server.movedTo = other.url;
  await expect((await open(server.url.replace("/mcp", "/moved"))).tools("tools", here)).rejects.toThrow(
    "cannot be reached, or does not speak MCP over HTTP.",
  );
  expect(other.begun).toBe(0);
  await other.close();
});

it("says that a server is not there, without its address", async () => {
  const servers = await open("http://127.0.0.1:9/mcp?key=secret");
  await expect(servers.tools("tools", here)).rejects.toThrow(
    /^The MCP server tools cannot be reached, or does not speak MCP over HTTP\.$/,
  );
});

it("says which package is missing, and needs none without servers", async () => {
  const load = () => Promise.reject(Object.assign(new Error("no"), { code: "ERR_MODULE_NOT_FOUND" }));
  await expect(openMcpServers(["tools=http://x.example"], log, { load })).rejects.toThrow(
    "--mcp-server needs the package @modelcontextprotocol/client: npm install @modelcontextprotocol/client",
  );
  expect(await openMcpServers([], log, { load })).toBeNull();
});
