import { mkdtempSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CreateExtension } from "../../../src/app/serve.ts";
import { TokenStore } from "../../../src/store/tokens.ts";
import { EMBEDDED_ENGINE, needing } from "../../support/needs.ts";
import { API_KEY, startTestServer, type TestServer, type TestServerOptions } from "../../support/test-server.ts";

let server: TestServer;
const start = async (options: TestServerOptions = {}) => {
  server = await startTestServer(options);
  return server;
};
afterEach(() => server.close());

const endless = { messages: [{ role: "user", content: "go on" }], max_tokens: 1500, ignore_eos: true };
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** Steps take a millisecond, so that requests are really in progress. */
const slow = { before: () => pause(1) as Promise<void> };

describe("a client that leaves", () => {
  it("is not logged as a server failure while it sends its body", async () => {
    await start();
    const logged = vi.spyOn(server.service.log, "error");
    const head = `authorization: Bearer ${API_KEY}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n`;
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n${head}\r\n{`);
    await pause(50);
    socket.destroy();
    await pause(50);
    expect(logged).not.toHaveBeenCalled();
    expect(await (await server.get("/metrics")).text()).not.toMatch(/flywheel_rejected_requests_total\{/);
  });

  needing(EMBEDDED_ENGINE).itEach([true, false], "ends its work before the next step (stream: %s)", async (stream) => {
    await start({ runner: slow });
    const gone = new AbortController();
    const pending = fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ ...endless, stream, n: 2 }),
      signal: gone.signal,
    }).then((r) => r.text());
    pending.catch(() => {});
    await expect.poll(() => server.service.engine.stats().running).toBe(2);
    gone.abort();
    await expect(pending).rejects.toThrow();
    await expect.poll(() => server.service.admission.active).toBe(0);
    await expect.poll(() => server.service.engine.stats().running).toBe(0);
    const steps = server.runner.forwards;
    await pause(50);
    expect(server.runner.forwards).toBe(steps);
    const metrics = await (await server.get("/metrics")).text();
    expect(metrics).toMatch(/vllm:request_success_total\{[^}]*finished_reason="abort"\} 2/);
  });

  it("ends all of its work, including requests that wait on the same connection", async () => {
    await start({ runner: slow });
    const request = postRequest({ ...endless, max_tokens: 1900 });
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.write(request.repeat(4));
    await expect.poll(() => server.service.engine.stats().running).toBe(4);
    socket.destroy();
    await expect.poll(() => server.service.admission.active).toBe(0);
    await expect.poll(() => server.service.engine.stats().running).toBe(0);
  });

  it("may leave a thousand times without leaving anything behind", async () => {
    await start({ config: { maxQueue: 2000 }, runner: slow });
    const leave = (stream: boolean, after: number) =>
      new Promise<void>((resolve) => {
        const body = JSON.stringify({ ...endless, stream });
        const request = httpRequest(
          `${server.url}/v1/chat/completions`,
          {
            method: "POST",
            headers: {
              authorization: `Bearer ${API_KEY}`,
              "content-type": "application/json",
              "content-length": Buffer.byteLength(body),
            },
          },
          (response) => response.once("data", () => request.destroy()),
        );
        request.on("error", () => {});
        request.on("close", () => resolve());
        request.end(body);
        setTimeout(() => request.destroy(), after);
      });
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 100 }, (_, i) => leave(i % 2 === 0, 5 + (i % 40))));
    }
    await expect.poll(() => server.service.admission.active).toBe(0);
    await expect.poll(() => server.service.engine.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
    // The next request has the engine to itself: one step for its prompt, which gives the first token, one more. Those whose
    // bytes were still on the way when their client left are over soon, too.
    const stepsOfOne = async () => {
      const before = server.runner.forwards;
      await server.chat({ ...endless, max_tokens: 2 });
      return server.runner.forwards - before;
    };
    await expect.poll(stepsOfOne).toBeLessThanOrEqual(3);
  });
});

describe("a client that does not read", () => {
  const cutOff = async () => (await (await server.get("/metrics")).text()).includes('reason="slow_client"} 1');

  it("is cut when too much waits for it, and its work ends", async () => {
    await start({ config: { maxLogprobs: 128, streamBufferBytes: 20_000 } });
    await openSilently(hugeRequest());
    await expect.poll(cutOff).toBe(true);
    await expect.poll(() => server.service.engine.stats()).toMatchObject({ running: 0, waiting: 0 });
    expect(server.service.engine.stats().generatedTokens).toBeLessThan(8 * 300);
    expect(await (await server.get("/metrics")).text()).toMatch(/finished_reason="abort"\} 8/);
  });

  it("is cut when it takes nothing for too long", async () => {
    await start({ config: { maxLogprobs: 128, streamStallTimeout: 0.3 } });
    await openSilently(hugeRequest());
    await expect.poll(() => server.service.engine.stats().running).toBe(8);
    await expect.poll(cutOff).toBe(true);
  });

  it("gets everything, merged, when it reads late", async () => {
    await start({ config: { maxLogprobs: 128, streamBufferBytes: 100_000_000 } });
    const client = await openSilently(hugeRequest());
    await expect.poll(() => server.service.engine.stats().running).toBe(8);
    await expect.poll(() => server.service.engine.stats().running).toBe(0);
    const text = await client.read();
    const chunks = [...text.matchAll(/data: (\{[^\n]*\})\n/g)].map((match) => JSON.parse(match[1]!));
    const choices = chunks.flatMap((chunk) => chunk.choices);
    const entries = choices.flatMap((choice) => choice.logprobs?.content ?? []);
    expect(entries).toHaveLength(8 * 300);
    expect(choices.length).toBeLessThan(8 * 300);
    expect(choices.at(-1).finish_reason).toBe("length");
  });
});

describe("shutdown", () => {
  it("does not wait for clients that neither read nor finish sending", async () => {
    const patient = { streamBufferBytes: 100_000_000, streamStallTimeout: 3600 };
    await start({ config: { maxLogprobs: 128, ...patient, shutdownTimeout: 0.1 } });
    await openSilently(hugeRequest());
    await openSilently("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{");
    await expect.poll(() => server.service.admission.active).toBe(8);
    await server.close(); // and not after the hour of streamStallTimeout
    await start();
  });

  it("finishes running requests, refuses new ones and reports itself unhealthy", async () => {
    await start({ config: { shutdownTimeout: 600 }, runner: slow });
    const running = server.stream({ ...endless, max_tokens: 200 });
    const whole = server.chat({ ...endless, max_tokens: 200 });
    await expect.poll(() => server.service.engine.stats().running).toBe(2);
    const closing = server.close();
    const refused = await server.post("/v1/chat/completions", endless);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBeTruthy();
    expect((await server.get("/health")).status).toBe(503);
    expect((await running).at(-1).choices[0].finish_reason).toBe("length");
    expect((await whole).usage.completion_tokens).toBe(200);
    await closing;
    await expect(server.get("/health")).rejects.toThrow();
    await start();
  });

  it("cuts what does not finish in time, with an error a client understands", async () => {
    await start({ config: { shutdownTimeout: 0.2 }, runner: slow });
    const response = await server.post("/v1/chat/completions", { ...endless, stream: true });
    const whole = server.post("/v1/chat/completions", endless);
    await expect.poll(() => server.service.engine.stats().running).toBe(2);
    await server.close();
    const text = await response.text();
    expect(text).toMatch(
      /data: \{"error":\{"message":"The server is shutting down\.","type":"ServiceUnavailableError","param":null,"code":503\}\}\n\ndata: \[DONE\]\n\n$/,
    );
    expect((await whole).status).toBe(503);
    await start();
  });
});

describe("a start or a stop that fails", () => {
  const closed: string[] = [];
  const closing = (name: string, fault?: string) => async () => {
    closed.push(name);
    if (fault !== undefined) throw new Error(fault);
  };
  const extension = (name: string, fault?: string): CreateExtension => {
    return async () => ({ routes: () => {}, close: closing(name, fault) });
  };
  beforeEach(() => {
    closed.length = 0;
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  needing(EMBEDDED_ENGINE).it("closes the address and everything behind it if a later step fails", async () => {
    const listening = vi.spyOn(Server.prototype, "listen");
    vi.spyOn(TokenStore.prototype, "createFirst").mockImplementation(() => {
      throw new Error("the disk is full");
    });
    const data = mkdtempSync(join(tmpdir(), "flywheel-lifecycle-"));
    const extensions = [extension("training")];
    const options = { config: { apiKey: [], data }, model: { close: closing("model") }, extensions };
    await expect(startTestServer(options)).rejects.toThrow("the disk is full");
    expect(listening.mock.contexts.length).toBeGreaterThan(0);
    for (const opened of listening.mock.contexts) expect((opened as Server).listening).toBe(false);
    expect(closed).toEqual(["training", "model"]);
    vi.restoreAllMocks();
    // Nor is the folder held any longer.
    await start({ config: { data }, extensions });
  });

  needing(EMBEDDED_ENGINE).it(
    "closes every part even if one fails, reports the failure, and frees the folder",
    async () => {
      const data = mkdtempSync(join(tmpdir(), "flywheel-lifecycle-"));
      const options = {
        config: { data },
        model: { close: closing("model") },
        extensions: [extension("first"), extension("second", "the second cannot end")],
      };
      const failing = await startTestServer(options);
      await expect(failing.close()).rejects.toThrow("the second cannot end");
      expect(closed).toEqual(["second", "first", "model"]);
      await expect(fetch(`${failing.url}/health`)).rejects.toThrow();
      await start({ config: { data }, extensions: [extension("third")] });
    },
  );
});

describe("an engine that fails", () => {
  it("is a 500 for its requests only, an error event in a stream, never a stack", async () => {
    let broken = false;
    await start({
      runner: {
        before: () => {
          if (broken) throw new Error("secret detail at /some/path.ts:5");
        },
      },
    });
    broken = true;
    const whole = await server.post("/v1/chat/completions", endless);
    expect(whole.status).toBe(500);
    expect(whole.headers.get("x-should-retry")).toBe("false");
    const text = await whole.text();
    expect(JSON.parse(text).error).toMatchObject({ type: "InternalServerError", param: null, code: 500 });
    expect(text).not.toContain("secret");
    const stream = await (await server.post("/v1/chat/completions", { ...endless, stream: true })).text();
    expect(stream).toMatch(/^data: \{"error":.*\}\n\ndata: \[DONE\]\n\n$/);
    expect(stream).not.toContain("secret");
    broken = false;
    expect((await server.chat({ ...endless, max_tokens: 2 })).usage.completion_tokens).toBe(2);
  });

  needing(EMBEDDED_ENGINE).it("is a 503 that says when to come back, once it cannot be started again", async () => {
    await start();
    vi.spyOn(server.service.engine, "healthy").mockReturnValue(false);
    for (const refused of [await server.post("/v1/chat/completions", endless), await server.get("/health")]) {
      expect(refused.status).toBe(503);
      expect(refused.headers.get("retry-after")).toBe("10");
    }
  });
});

/** A stream with more output than the kernel buffers of a connection can hide. */
function hugeRequest(): string {
  return postRequest({ ...endless, stream: true, n: 8, logprobs: true, top_logprobs: 128, max_tokens: 300 });
}

function postRequest(json: object): string {
  const body = JSON.stringify(json);
  const head = `authorization: Bearer ${API_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}`;
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n${head}\r\n\r\n${body}`;
}

/** Sends and does not read until asked to. */
function openSilently(request: string): Promise<{ read: () => Promise<string> }> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.on("error", () => {});
    const closed = new Promise<void>((done) => socket.on("close", () => done()));
    const read = async () => {
      const pieces: Buffer[] = [];
      socket.on("data", (bytes) => {
        pieces.push(bytes);
        if (Buffer.concat(pieces.slice(-2)).includes("[DONE]")) socket.end();
      });
      socket.resume();
      await closed;
      return Buffer.concat(pieces).toString();
    };
    socket.on("connect", () => {
      socket.pause();
      socket.write(request);
      resolve({ read });
    });
  });
}
