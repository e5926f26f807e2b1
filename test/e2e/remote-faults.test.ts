// Engines in processes of their own die, hang, come back and lose connections, while a server in front of them streams.
// Greedy output must have the bits of an undisturbed run.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";
import { MODEL, type Served, serve } from "../support/cli-process.ts";
import { CuttingProxy } from "../support/cutting-proxy.ts";
import { type Loose, looseFetch } from "../support/test-server.ts";

const closers: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of closers.splice(0).reverse()) await one.close();
});

function startEngine(model: string, port = 0): Promise<Served> {
  const data = mkdtempSync(join(tmpdir(), "flywheel-engine-"));
  const flags = ["--model", model, "--port", String(port), "--data", data, "--api-key", "k", "--no-training"];
  return serve([...flags, "--threads", "1", "--log-level", "error"]);
}

async function startFront(model: string, urls: readonly string[], flags: object = {}): Promise<StartedServer> {
  const own = { model, engineUrl: urls, engineApiKey: "k", engineTimeout: 60, training: false, queueTimeout: 300 };
  const data = mkdtempSync(join(tmpdir(), "flywheel-front-"));
  const config = loadConfig({ env: {}, flags: { ...own, port: 0, data, apiKey: ["k"], logLevel: "error", ...flags } });
  const server = await startServer(config, loadModel);
  closers.push(server);
  return server;
}

function post(server: { url: string }, body: object): Promise<Response> {
  const headers = { authorization: "Bearer k", "content-type": "application/json" };
  return fetch(`${server.url}/v1/completions`, { method: "POST", headers, body: JSON.stringify(body) });
}

interface Outcome {
  ids: number[];
  logprobs: number[];
  finish: string | null;
  error: { message: string; code: number } | null;
}

/** Reads a stream. `onTokens` sees how many tokens there are so far. */
async function read(response: Response, onTokens: (count: number) => void = () => {}): Promise<Outcome> {
  const outcome: Outcome = { ids: [], logprobs: [], finish: null, error: null };
  let rest = "";
  for await (const bytes of response.body!) {
    rest += Buffer.from(bytes).toString();
    const events = rest.split("\n\n");
    rest = events.pop()!;
    for (const event of events.filter((text) => text.startsWith("data: {"))) {
      const { choices, error } = JSON.parse(event.slice(6)) as Loose;
      outcome.error ??= error ?? null;
      for (const choice of choices ?? []) {
        outcome.ids.push(...choice.token_ids);
        outcome.logprobs.push(...(choice.logprobs?.token_logprobs ?? []));
        outcome.finish ??= choice.finish_reason;
      }
      onTokens(outcome.ids.length);
    }
  }
  return outcome;
}

const greedy = { temperature: 0, stream: true, return_token_ids: true, logprobs: 1, ignore_eos: true };

async function isReady(server: StartedServer): Promise<boolean> {
  return (await looseFetch(`${server.url}/health`)).status === 200;
}

describe("cut connections", () => {
  const request = { ...greedy, prompt: [5, 6, 7, 8], max_tokens: 24 };

  it("never lose or double a token, wherever they happen", async () => {
    const engine = await startEngine(MODEL);
    const proxies = [await CuttingProxy.start(engine.url), await CuttingProxy.start(engine.url)];
    closers.push(...proxies);
    const front = await startFront(
      MODEL,
      proxies.map(({ url }) => url),
    );
    const whole = await read(await post(front, request));
    expect([whole.ids.length, whole.finish, whole.error]).toEqual([24, "length", null]);
    for (let k = 1; k < 24; k++) {
      for (const proxy of proxies) proxy.cutAfter = k;
      const cut = await read(await post(front, request));
      expect(cut).toEqual(whole);
    }
    expect(proxies.reduce((sum, { cuts }) => sum + cuts, 0)).toBeGreaterThan(23);
  });

  it("end a request that cannot go on with an error that says so", async () => {
    const proxy = await CuttingProxy.start((await startEngine(MODEL)).url);
    closers.push(proxy);
    const front = await startFront(MODEL, [proxy.url]);
    proxy.cutAfter = 3;
    const seeded = await read(await post(front, { ...request, temperature: 1, seed: 5 }));
    expect(seeded.error).toMatchObject({ code: 503, message: expect.stringContaining("Send it again") });
    const whole = await post(front, { ...request, temperature: 1, seed: 5, stream: false });
    expect([whole.status, whole.headers.get("retry-after")]).toEqual([503, "1"]);
  });
});

describe("engines that die", () => {
  const request = { ...greedy, prompt: "Once upon a time there was", max_tokens: 160 };

  /** The engine that runs something now. */
  async function busy(engines: readonly Served[]): Promise<Served> {
    for (;;) {
      for (const engine of engines) {
        const page = await (await fetch(`${engine.url}/metrics`)).text();
        if (/^vllm:num_requests_running\S* [1-9]/m.test(page)) return engine;
      }
    }
  }

  it("are killed or stopped in the middle of a stream, and nobody notices", async () => {
    const engines = await Promise.all([startEngine("bundled"), startEngine("bundled"), startEngine("bundled")]);
    const front = await startFront(
      "bundled",
      engines.map(({ url }) => url),
      { engineTimeout: 5 }, // for the one that is stopped
    );
    const whole = await read(await post(front, request));
    expect([whole.ids.length, whole.error]).toEqual([160, null]);
    for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
      let hit: Promise<Served> | null = null;
      const outcome = await read(await post(front, request), (count) => {
        if (count >= 10) hit ??= busy(engines.filter(({ process }) => process.exitCode === null && !process.killed));
        void hit?.then(({ process }) => process.kill(signal));
      });
      expect(hit).not.toBeNull();
      expect(outcome).toEqual(whole);
    }
    await expect.poll(() => isReady(front)).toBe(true);
  });

  it("are all gone: requests wait, get 503, and are served again once an engine is back", async () => {
    const engine = await startEngine(MODEL);
    const front = await startFront(MODEL, [engine.url], { queueTimeout: 2 });
    const body = { ...greedy, prompt: [5, 6, 7], max_tokens: 8, stream: false };
    const before = await (await post(front, body)).json();
    engine.process.kill("SIGKILL");
    await expect.poll(() => isReady(front)).toBe(false);
    const refused = await post(front, body);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    const [waiting] = await Promise.all([post(front, body), startEngine(MODEL, Number(new URL(engine.url).port))]);
    expect([200, 503]).toContain(waiting.status); // the engine may take longer than the queue waits
    await expect.poll(() => isReady(front)).toBe(true);
    const after = await (await post(front, body)).json();
    expect((after as Loose).choices).toEqual((before as Loose).choices);
  });
});
