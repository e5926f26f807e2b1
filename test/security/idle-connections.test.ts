// Connections that nobody uses must not keep others out: half of them send nothing, the others begin a header and never
// end it.
import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { KEY, startVictim, type Victim, type VictimOptions } from "./victim.ts";

let victim: Victim | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await victim?.stop();
});

async function start(options: VictimOptions): Promise<Victim> {
  victim = await startVictim(options);
  return victim;
}

function open(sent = ""): Socket {
  const socket = connect({ port: Number(new URL(victim!.url).port), host: "127.0.0.1" });
  socket.on("error", () => {}); // the server closes connections here
  socket.on("connect", () => socket.write(sent));
  sockets.push(socket);
  return socket;
}

/** Idle connections that were accepted, every second one inside its header. */
async function crowd(count: number): Promise<Socket[]> {
  const begun = "GET /health HTTP/1.1\r\nhost: local";
  const some = Array.from({ length: count }, (_, i) => open(i % 2 === 0 ? "" : begun));
  await Promise.all(
    some.map((socket) => new Promise((resolve) => socket.once("connect", resolve).once("close", resolve))),
  );
  return some;
}

/** How long a new client waits for its answer, in milliseconds. */
async function wait(path = "/health"): Promise<number> {
  const socket = open(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  const from = performance.now();
  const first = await new Promise<string>((resolve, reject) => {
    socket.once("data", (bytes) => resolve(String(bytes)));
    socket.once("close", () => reject(new Error("closed without an answer")));
  });
  expect(first).toContain("HTTP/1.1 200");
  return performance.now() - from;
}

const closed = (some: readonly Socket[] = sockets) => some.filter(({ destroyed }) => destroyed).length;

it("2,000 of them leave a new client its answer, even where few files may be open", async () => {
  await start({ openFiles: 1024 });
  const alone = Math.max(await wait(), await wait());
  await crowd(2000);
  expect(await wait()).toBeLessThan(Math.max(2000, 20 * alone));
  await expect.poll(() => closed()).toBeGreaterThan(1000);
  expect(victim!.printed()).toContain("connections=768");
});

it("those with requests in flight stay", async () => {
  await start({ args: ["--max-connections", "64"] });
  const authorization = `authorization: Bearer ${KEY}\r\n`;
  const logs = open(`GET /v1/logs HTTP/1.1\r\nhost: localhost\r\n${authorization}\r\n`);
  await new Promise((resolve) => logs.once("data", resolve));
  const body = JSON.stringify({ prompt: "one", max_tokens: 2 });
  const headers = `content-type: application/json\r\ncontent-length: ${body.length}\r\n${authorization}`;
  const slow = open(`POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n`);
  await wait();
  const others = await crowd(500);
  await wait();
  await expect.poll(() => closed(others)).toBeGreaterThan(400);
  expect(closed([logs, slow])).toBe(0);
  slow.write(body);
  expect(String(await new Promise((resolve) => slow.once("data", resolve)))).toContain("HTTP/1.1 200");
});

it("a body without a token is as idle as a header", async () => {
  await start({ args: ["--max-connections", "64"] });
  const headers = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 40\r\n";
  const alone = Math.max(await wait(), await wait());
  for (let i = 0; i < 500; i++) open(`POST /v1/sessions HTTP/1.1\r\n${headers}\r\n{`);
  expect(await wait()).toBeLessThan(Math.max(2000, 20 * alone));
});

it("a header that takes too long ends with 408", async () => {
  await start({ args: ["--header-timeout", "0.5"] });
  const socket = open("GET /health HTTP/1.1\r\nhost: local");
  expect(String(await new Promise((resolve) => socket.once("data", resolve)))).toContain("HTTP/1.1 408");
  await expect.poll(() => socket.destroyed).toBe(true);
});
