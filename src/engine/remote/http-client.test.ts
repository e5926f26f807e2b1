import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { HttpClient } from "./http-client.ts";

let server: Server;
afterEach(() => new Promise((resolve) => server.close(resolve)));

it("sends nothing when the signal is aborted already", async () => {
  let requests = 0;
  server = createServer((_, response) => {
    requests++;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new HttpClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, null);
  const signal = AbortSignal.abort(new Error("it is too late"));
  await expect(client.whole("GET", "/", { signal })).rejects.toThrow("it is too late");
  expect((await client.whole("GET", "/", {})).status).toBe(200);
  expect(requests).toBe(1);
  client.close();
});
