// What clients of a fleet see over HTTP when its engines die.

import { afterEach, expect, it } from "vitest";
import { fixtureFolder } from "../../reference/runner-driver.ts";
import { ByteTokenizer } from "../../support/byte-tokenizer.ts";
import { FakeReplica, type FakeReplicaOptions } from "../../support/fake-replica.ts";
import { hashRow } from "../../support/fake-runner.ts";
import { babble } from "../../support/shared-server.ts";
import { startFleet } from "../../support/start-fleet.ts";
import { type Loose, startTestServer, type TestServer } from "../../support/test-server.ts";

const { vocabSize } = new ByteTokenizer();
const opened: TestServer[] = [];

afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

/** The model never ends by itself. */
const runner: FakeReplicaOptions["runner"] = {
  row: (tokens, adapters, out) => {
    hashRow(tokens, adapters, out);
    out[2] = -30;
  },
  ...{ vocabSize, positionsPerBlock: 16, numBlocks: 512, maxPositions: 2048 },
};

async function serve(queueTimeoutMs: number, ...options: FakeReplicaOptions[]) {
  const replicas = options.map((each, i) => new FakeReplica(`r${i}`, { runner, ...each }));
  const { engine } = await startFleet(replicas, { queueTimeoutMs });
  const server = await startTestServer({ model: { engine } });
  opened.push(server);
  return { server, replicas };
}

/** What a stream says, without ids and times. */
function told(events: Loose[]) {
  const choices = events.flatMap((event) => event.choices);
  return {
    text: choices.map((choice) => choice.delta.content ?? "").join(""),
    tokens: choices.flatMap((choice) => choice.token_ids ?? []),
    logprobs: choices.flatMap((choice) => choice.logprobs?.content ?? []),
    end: choices.map((choice) => [choice.finish_reason, choice.stop_reason]).filter(([reason]) => reason != null),
    usage: events.at(-1).usage,
  };
}

const long = {
  ...babble,
  max_tokens: 40,
  logprobs: true,
  top_logprobs: 2,
  return_token_ids: true,
  stream_options: { include_usage: true },
};

it.each([1, 3, 7])("a stream does not show that engines died after every %i tokens", async (k) => {
  const { server: calm } = await serve(600_000, {});
  const { server: stormy } = await serve(600_000, ...[0, 1].map(() => ({ cut: (tokens: number) => tokens >= k })));
  const undisturbed = told(await calm.stream(long));
  expect(undisturbed.tokens).toHaveLength(40);
  expect(told(await stormy.stream(long))).toEqual(undisturbed);
  const stop = undisturbed.text.slice(9, 15); // found although it came from several engines
  expect(told(await stormy.stream({ ...long, stop }))).toEqual(told(await calm.stream({ ...long, stop })));
  const metrics = await (await stormy.get("/metrics")).text();
  expect(metrics).toMatch(/flywheel:replica_resumes_total\{replica="engine 0"\} [1-9]/);
  expect(metrics).toMatch(/flywheel:replica_failures_total\{replica="engine 0"\} [1-9]/);
});

it("says that a retry helps when a request cannot go on", async () => {
  const { server } = await serve(600_000, ...[0, 1].map(() => ({ cut: (tokens: number) => tokens >= 2 })));
  const request = { ...babble, temperature: 1, seed: 3 };
  const response = await server.post("/v1/chat/completions", request);
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  expect((await response.json()).error).toMatchObject({ code: 503, type: "ServiceUnavailableError" });
  const events = await (await server.post("/v1/chat/completions", { ...request, stream: true })).text();
  expect(events).toContain("The engine that ran this request was lost.");
});

it("waits for an engine for a while, and is not healthy meanwhile", async () => {
  const { server, replicas } = await serve(100, {});
  expect((await server.get("/health")).status).toBe(200);
  replicas[0]!.die();
  const health = await server.get("/health");
  expect([health.status, health.headers.get("retry-after")]).toEqual([503, "1"]);
  const late = await server.post("/v1/chat/completions", babble);
  expect([late.status, late.headers.get("retry-after")]).toEqual([503, "1"]);
  const adapter = { lora_name: "mine", lora_path: fixtureFolder("llama") };
  expect((await server.post("/v1/load_lora_adapter", adapter)).status).toBe(503);

  const { server: patient, replicas: others } = await serve(600_000, {});
  others[0]!.die();
  const waiting = patient.chat(babble);
  await expect.poll(async () => (await patient.get("/metrics")).text()).toMatch(/num_requests_waiting\{[^}]*\} 1/);
  others[0]!.revive();
  expect((await waiting).choices[0].finish_reason).toBe("length");
  expect((await patient.get("/health")).status).toBe(200);
});
