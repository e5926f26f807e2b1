// What anybody can ask for without a token must cost hardly more than a look at /health: no page is built for one
// request, and no body is read that nobody needs.
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startVictim, type Victim } from "./victim.ts";

let victim: Victim;
beforeAll(async () => {
  victim = await startVictim();
});
afterAll(() => victim.stop());

/** Processor time of one GET in milliseconds: of `count` in a row. */
async function cost(path: string, encoding: string, count: number): Promise<number> {
  const get = async () => {
    const reply = await fetch(victim.url + path, { headers: { "accept-encoding": encoding } });
    expect(reply.status).toBe(200);
    await reply.arrayBuffer();
  };
  for (let i = 0; i < 200; i++) await get();
  const before = victim.cpu();
  for (let i = 0; i < count; i++) await get();
  return (victim.cpu() - before) / count;
}

describe("the description of the API", () => {
  let health: number;
  beforeAll(async () => {
    await cost("/health", "identity", 500); // until it is compiled
    health = await cost("/health", "identity", 1000);
  });

  it.each([
    ["/docs", "identity"],
    ["/docs", "br"],
    ["/openapi.json", "identity"],
    ["/openapi.json", "gzip"],
  ])("GET %s, %s, costs at most eight times as much as /health", async (path, encoding) => {
    expect((await cost(path, encoding, 500)) / health).toBeLessThan(8);
  });

  it.each(["/docs", "/openapi.json"])("%s is compressed as the client likes, and sent once", async (path) => {
    const plain = await fetch(victim.url + path, { headers: { "accept-encoding": "identity" } });
    expect(plain.headers.get("content-encoding")).toBe(null);
    const text = await plain.text();
    for (const encoding of ["br", "gzip"]) {
      const reply = await fetch(victim.url + path, { headers: { "accept-encoding": encoding } });
      expect(reply.headers.get("content-encoding")).toBe(encoding);
      expect(reply.headers.get("vary")).toBe("accept-encoding");
      expect(Number(reply.headers.get("content-length"))).toBeLessThan(text.length / 5);
      expect(await reply.text()).toBe(text);
    }
    const known = await fetch(victim.url + path, { headers: { "if-none-match": plain.headers.get("etag")! } });
    expect(known.status).toBe(304);
  });
});

/** What a connection without a token sends and gets, byte by byte. */
class Caller {
  readonly socket: Socket;
  got = "";
  closed = false;

  constructor() {
    this.socket = connect({ port: Number(new URL(victim.url).port), host: "127.0.0.1" });
    this.socket.on("data", (bytes) => (this.got += String(bytes)));
    this.socket.on("error", () => {}); // the server closes connections here
    this.socket.on("close", () => (this.closed = true));
  }

  start(method: string, path: string, headers: Record<string, string | number>): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(`${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${lines.join("")}\r\n`);
  }

  status(): Promise<number> {
    return expect
      .poll(() => this.got)
      .toContain("\r\n\r\n")
      .then(() => Number(/^HTTP\/1.1 (\d+)/.exec(this.got)![1]));
  }

  /** Sends without end, as fast as it can; the bytes that left until the server closed the connection. */
  async flood(): Promise<number> {
    const bytes = Buffer.alloc(65536, 0x20);
    while (!this.closed) {
      if (!this.socket.write(bytes))
        await new Promise((resolve) => this.socket.once("drain", resolve).once("close", resolve));
    }
    return this.socket.bytesWritten;
  }
}

const JSON_BODY = { "content-type": "application/json" };
const FOUR_MIB = { ...JSON_BODY, "content-length": 4 * 1024 * 1024 };

describe("a body that nobody needs", () => {
  it.each([
    ["POST", "/ping", 200],
    ["POST", "/no/such/path", 404],
    ["POST", "/health", 405],
    ["POST", "/v1/no/such/path", 401],
    ["POST", "/v1/chat/completions", 401],
    ["OPTIONS", "/v1/chat/completions", 405],
    ["DELETE", "/metrics", 405],
    ["POST", "/v1/sessions", 413],
  ])("%s %s answers before it arrives, and does not wait for it", async (method, path, status) => {
    const caller = new Caller();
    caller.start(method, path, FOUR_MIB);
    expect(await caller.status()).toBe(status);
    caller.socket.destroy();
  });

  it("is not read to its end", async () => {
    for (const path of ["/ping", "/no/such/path", "/v1/chat/completions", "/v1/sessions"]) {
      const caller = new Caller();
      caller.start("POST", path, { ...JSON_BODY, "content-length": 2 ** 40 });
      await caller.status();
      // what the server reads, and what the buffers of both sockets hold
      expect(await caller.flood()).toBeLessThan(16 * 1024 * 1024);
    }
  });

  it("does not keep a connection that stays open for it", async () => {
    const caller = new Caller();
    caller.start("POST", "/ping", FOUR_MIB);
    await caller.status();
    await expect.poll(() => caller.closed, { timeout: 60_000 }).toBe(true);
  });

  it("does not break a connection if it is short", async () => {
    const caller = new Caller();
    caller.start("POST", "/no/such/path", { ...JSON_BODY, "content-length": 500_000 });
    expect(await caller.status()).toBe(404);
    caller.got = "";
    caller.socket.write(Buffer.alloc(500_000, 0x20));
    caller.start("GET", "/health", {});
    expect(await caller.status()).toBe(200);
    caller.socket.destroy();
  });
});

describe("POST /v1/sessions", () => {
  it("refuses a body of more than 4 KiB while it arrives", async () => {
    const caller = new Caller();
    caller.start("POST", "/v1/sessions", { ...JSON_BODY, "transfer-encoding": "chunked" });
    caller.socket.write(`${(4000).toString(16)}\r\n${" ".repeat(4000)}\r\n`);
    expect(await (await fetch(`${victim.url}/health`)).text()).toBe("");
    expect(caller.got).toBe("");
    caller.socket.write(`${(200).toString(16)}\r\n${" ".repeat(200)}\r\n`);
    expect(await caller.status()).toBe(413);
    caller.socket.destroy();
  });

  it("reads one of 4 KiB", async () => {
    const body = JSON.stringify({ code: "a".repeat(43) }).padEnd(4096);
    const reply = await fetch(`${victim.url}/v1/sessions`, { method: "POST", headers: JSON_BODY, body });
    expect(reply.status).toBe(401);
  });
});
