import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { API_KEY, says, startTestServer } from "../../support/test-server.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "flywheel-uds-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (uds: string) => startTestServer({ config: { uds, data: join(folder, "data") } });

/** A chat request over the socket: its status and its text. */
function chat(uds: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" };
    const sent = request({ socketPath: uds, path: "/v1/chat/completions", method: "POST", headers }, async (reply) => {
      let text = "";
      for await (const piece of reply) text += piece;
      resolve({ status: reply.statusCode!, text: JSON.parse(text).choices?.[0].message.content });
    });
    sent.on("error", reject);
    sent.end(JSON.stringify({ messages: says("over a socket") }));
  });
}

it("serves on a Unix socket and leaves none behind", async () => {
  const uds = join(folder, "plain.sock");
  const server = await start(uds);
  expect(server.url).toBe(`unix:${uds}`);
  expect(await chat(uds)).toEqual({ status: 200, text: "over a socket" });
  await server.close();
  expect(existsSync(uds)).toBe(false);
});

it("replaces the socket of a server that was killed", async () => {
  const uds = join(folder, "stale.sock");
  const script = `require("node:net").createServer().listen(${JSON.stringify(uds)}, () => console.log("up"))`;
  const child = spawn(process.execPath, ["-e", script]);
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(statSync(uds).isSocket()).toBe(true);
  const server = await start(uds);
  expect(await chat(uds)).toEqual({ status: 200, text: "over a socket" });
  await server.close();
});

it("does not replace the socket of a running server, or any other file", async () => {
  const uds = join(folder, "live.sock");
  const server = await start(uds);
  await expect(start(uds)).rejects.toThrow(/another server is listening/);
  expect((await chat(uds)).status).toBe(200);
  await server.close();
  const file = join(folder, "file");
  writeFileSync(file, "precious");
  await expect(start(file)).rejects.toThrow(/not a socket/);
  expect(existsSync(file)).toBe(true);
  await expect(start(join(folder, "missing", "x.sock"))).rejects.toThrow(/folder does not exist/);
  await expect(start(join(folder, "x".repeat(200)))).rejects.toThrow(/at most 103 bytes/);
});
