// MCP servers of the operator over the wire: who may call their tools, and how many at once.
import { afterAll, beforeAll, expect, it } from "vitest";
import { FakeMcpServer } from "../../support/mcp-server.ts";
import { startTestServer, type TestServer } from "../../support/test-server.ts";

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

const call = (body: unknown, name = "sea") => server.post(`/v1/mcp-servers/${name}/calls`, body);
const bearer = async (scopes: string[]) => {
  const { token } = await (await server.post("/v1/tokens", { name: "t", scopes })).json();
  return { authorization: `Bearer ${token}` };
};

it("lists servers by name only, and their tools", async () => {
  const list = await (await server.get("/v1/mcp-servers")).text();
  expect(JSON.parse(list)).toEqual({ object: "list", data: [{ object: "mcp_server", name: "sea" }] });
  const { data } = await (await server.get("/v1/mcp-servers/sea/tools")).json();
  expect(data.map(({ name }: { name: string }) => name)).toContain("look.up");
});

it("relays a call and its result", async () => {
  const body = { tool: "repeat", arguments: { text: "waves" } };
  expect(await (await call(body)).json()).toEqual({ object: "mcp_result", content: "waves", is_error: false });
  expect(await (await call({ tool: "look.up" })).json()).toMatchObject({ content: "nothing there", is_error: true });
});

it("says what is wrong with a call", async () => {
  const errors = [
    [await call({ tool: "repeat" }, "lake"), 404, /no MCP server "lake"/],
    [await call({ tool: 5 }), 400, /tool/],
    [await call({ tool: "repeat", arguments: [] }), 400, /arguments/],
    [await call({ tool: "nothing" }), 502, /The MCP server sea answered: .*Unknown tool/],
  ] as const;
  for (const [response, status, message] of errors) {
    expect(response.status).toBe(status);
    expect((await response.json()).error.message).toMatch(message);
  }
});

it("is for tokens with inference", async () => {
  const headers = await bearer(["training"]);
  const before = tools.calls.length;
  expect((await server.get("/v1/mcp-servers", headers)).status).toBe(403);
  expect((await server.get("/v1/mcp-servers/sea/tools", headers)).status).toBe(403);
  expect((await server.post("/v1/mcp-servers/sea/calls", { tool: "repeat" }, headers)).status).toBe(403);
  expect(tools.calls.length).toBe(before);
  expect((await server.get("/v1/mcp-servers", await bearer(["inference"]))).status).toBe(200);
});

it("lets one caller have eight calls at once, and ends those whose client left", async () => {
  const headers = { ...(await bearer(["inference"])), "content-type": "application/json" };
  const leaving = new AbortController();
  const before = tools.calls.length;
  const slow = Array.from({ length: 8 }, () =>
    fetch(`${server.url}/v1/mcp-servers/sea/calls`, {
      ...{ method: "POST", headers, body: JSON.stringify({ tool: "slow" }), signal: leaving.signal },
    }).catch(() => null),
  );
  await expect.poll(() => tools.calls.length).toBe(before + 8);
  const ninth = await server.post("/v1/mcp-servers/sea/calls", { tool: "repeat", arguments: { text: "" } }, headers);
  expect(ninth.status).toBe(429);
  expect(ninth.headers.get("retry-after")).toBe("1");
  expect((await call({ tool: "repeat", arguments: { text: "other" } })).status).toBe(200); // another caller
  leaving.abort();
  await Promise.all(slow);
  const again = () => server.post("/v1/mcp-servers/sea/calls", { tool: "repeat", arguments: { text: "" } }, headers);
  await expect.poll(async () => (await again()).status).toBe(200);
});

it("lists none by default", async () => {
  const plain = await startTestServer();
  expect(await (await plain.get("/v1/mcp-servers")).json()).toEqual({ object: "list", data: [] });
  expect((await plain.post("/v1/mcp-servers/sea/calls", { tool: "repeat" })).status).toBe(404);
  await plain.close();
});
