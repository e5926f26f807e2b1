// Looks for the addresses of the engines behind a server: in everything that a visitor, and a client without the scope
// admin, may read. They belong to a private network.
import { expect, it } from "vitest";
import { send, startFront } from "./front.ts";

it("shows the addresses of engines to admins only, and numbers them for everybody else", async () => {
  const { replica, server } = await startFront();
  const made = await send(server, "POST", "/v1/tokens", { name: "client", scopes: ["inference", "training"] });
  const client = { authorization: `Bearer ${JSON.parse(made.text).token}` };
  const visitor = { authorization: "" };
  const { paths } = JSON.parse((await send(server, "GET", "/openapi.json")).text) as { paths: Record<string, object> };
  const routes = Object.entries(paths).flatMap(([path, verbs]) =>
    "get" in verbs && !path.includes("{") ? [path] : [],
  );
  expect(routes).toEqual(expect.arrayContaining(["/metrics", "/v1/engine", "/v1/preview/servers", "/v1/system-check"]));
  const address = new RegExp(`127\\.0\\.0\\.1:${replica.port}|localhost:${replica.port}`);
  const shown: string[] = [];
  for (const path of routes) {
    for (const accept of ["application/json", "text/event-stream"]) {
      for (const who of [visitor, client])
        expect((await send(server, "GET", path, undefined, { ...who, accept })).text).not.toMatch(address);
      if (address.test((await send(server, "GET", path, undefined, { accept })).text)) shown.push(`${path} ${accept}`);
    }
  }
  expect(shown).toEqual(expect.arrayContaining(["/v1/engine application/json", "/v1/engine text/event-stream"]));
  expect((await send(server, "GET", "/metrics", undefined, visitor)).text).toContain('{replica="engine 0"}');
  expect((await send(server, "GET", "/v1/engine", undefined, client)).text).toContain('"name":"engine 0"');
});
