// Two embedded engines behind one server answer with the same bits as one.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../../src/app/serve.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Loose, looseFetch } from "../../support/test-server.ts";

const checkpoint = fileURLToPath(new URL("../../fixtures/llama", import.meta.url));
let one: StartedServer;
let two: StartedServer;

beforeAll(async () => {
  const start = (dataParallelSize: number) =>
    startServer(
      loadConfig({
        env: {},
        flags: {
          model: checkpoint,
          port: 0,
          data: mkdtempSync(join(tmpdir(), "data-parallel-")),
          apiKey: ["k"],
          logLevel: "error",
          threads: 2,
          maxNumSeqs: 4,
          maxLoras: 2,
          loraModules: [`tuned=${checkpoint}`],
          dataParallelSize,
        },
      }),
      loadModel,
    );
  [one, two] = [await start(1), await start(2)];
});

afterAll(async () => {
  await Promise.all([one?.close(), two?.close()]);
});

const headers = { authorization: "Bearer k", "content-type": "application/json" };

async function complete(server: StartedServer, body: object): Promise<Loose> {
  const response = await looseFetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return (await response.json()).choices;
}

const requests = Array.from({ length: 24 }, (_, i) => ({
  model: i % 4 === 3 ? "tuned" : undefined,
  prompt: Array.from({ length: 5 + i * 3 }, (_, at) => 3 + ((at * 11 + (i % 5)) % 200)),
  max_tokens: 6 + (i % 7),
  temperature: i % 2,
  seed: i,
  n: 1 + (i % 3),
  logprobs: 2,
  ignore_eos: true,
}));

it("gives the same tokens and log-probabilities, alone and under load, with and without an adapter", async () => {
  const alone: Loose[] = [];
  for (const request of requests) alone.push(await complete(one, request));
  expect(await Promise.all(requests.map((request) => complete(two, request)))).toEqual(alone);
});

it("shows both engines in the metrics, and both have worked", async () => {
  const text = await (await looseFetch(`${two.url}/metrics`)).text();
  const value = (line: string) =>
    Number(
      text
        .split("\n")
        .find((each) => each.startsWith(`${line} `))
        ?.split(" ")
        .at(-1),
    );
  const requestsOf = [0, 1].map((i) => value(`flywheel:replica_requests_total{replica="engine ${i}"}`));
  expect(requestsOf[0]! + requestsOf[1]!).toBe(requests.length);
  for (const [i, count] of requestsOf.entries()) {
    expect(count).toBeGreaterThan(0);
    expect(value(`flywheel:replica_state{replica="engine ${i}",state="ready"}`)).toBe(1);
    expect(value(`flywheel:replica_in_flight{replica="engine ${i}"}`)).toBe(0);
  }
  const asked = requests.reduce((sum, { n, max_tokens }) => sum + n * max_tokens, 0);
  const total = text.split("\n").find((line) => line.startsWith("vllm:generation_tokens_total"));
  expect(total?.endsWith(` ${asked}`)).toBe(true);
  expect(
    (await looseFetch(`${one.url}/metrics`).then((response) => response.text())).includes("replica_requests_total{"),
  ).toBe(false);
});

it("loads and unloads adapters on both engines", async () => {
  const post = (path: string, body: object) =>
    looseFetch(two.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  expect((await post("/v1/unload_lora_adapter", { lora_name: "tuned" })).status).toBe(200);
  expect((await post("/v1/completions", { model: "tuned", prompt: [5], max_tokens: 1 })).status).toBe(404);
  expect((await post("/v1/load_lora_adapter", { lora_name: "again", lora_path: checkpoint })).status).toBe(200);
  const request = { prompt: requests[3]!.prompt, max_tokens: 8, temperature: 0, logprobs: 1 };
  const expected = await complete(one, { ...request, model: "tuned" });
  const replies = await Promise.all(Array.from({ length: 8 }, () => complete(two, { ...request, model: "again" })));
  for (const reply of replies) expect(reply).toEqual(expected);
});
