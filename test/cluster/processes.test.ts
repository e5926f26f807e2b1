// A deployment of real processes: an API server and two workers on one PostgreSQL and one folder, with the embedded trainer.
// The worker that runs a job is killed.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FlywheelClient } from "../../src/client/client.ts";
import type { ServerStatus, TrainingEvent } from "../../src/client/types.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { usePostgres } from "../postgres/use-postgres.ts";
import { MODEL, run, type Served, serve } from "../support/cli-process.ts";
import { violations } from "../training-invariants/violations.ts";

const postgres = usePostgres();
const KEY = "test-key";

it("a job whose worker is killed completes once, on the other worker", async () => {
  const database = await postgres().createDatabase();
  const data = mkdtempSync(join(tmpdir(), "flywheel-cluster-"));
  const env = { FLYWHEEL_DATABASE: database };
  const common = [MODEL, "--served-model-name", "tiny", "--data", data, "--port", "0", "--dtype", "float32"];
  const start = (role: string, until?: string) =>
    serve([...common, "--role", role, "--threads", "1", "--api-key", KEY, "--job-lease", "3"], env, until);
  const before = await openPostgres(database);
  const gone = `'gone', 'worker', 'http://gone', '0.1.0', (SELECT now_ms FROM clock) - 60000, '{"models":[],"replicas":[]}'`;
  await before.run(`INSERT INTO servers (id, role, address, version, seen_at, facts) VALUES (${gone})`);
  const api = await start("api");
  await expect.poll(() => api.err()).toContain("no server runs training jobs: start one with --role worker");
  await before.run("DELETE FROM servers WHERE id = 'gone'");
  await before.close();
  const workers = [await start("worker", "listening on"), await start("worker", "listening on")];

  // what a worker serves
  const [{ url }] = workers as [Served];
  for (const [path, status] of [
    ["/health", 200],
    ["/metrics", 200],
    ["/version", 200],
    ["/v1/models", 404],
  ] as const) {
    expect((await fetch(url + path, { headers: { authorization: `Bearer ${KEY}` } })).status, path).toBe(status);
  }

  const client = new FlywheelClient({ baseUrl: `${api.url}/v1`, apiKey: KEY });
  const model = await client.register({ project: "p", name: "agent", base_model: "tiny" });
  const groups = Array.from({ length: 60 }, (_, i) => ({
    trajectories: [0, 1].map((reward) => ({
      messages_and_choices: [
        { role: "user", content: `question ${i}` },
        {
          message: { role: "assistant", content: "" },
          logprobs: { content: [5, 6, 7 + reward].map((id) => ({ token: `token_id:${id}`, logprob: -1 })) },
        },
      ],
      reward,
    })),
  }));
  let events: TrainingEvent[] = [];
  let killed: ServerStatus | undefined;
  let killing = Promise.resolve();
  const kill = async () => {
    killed = (await client.servers()).find(({ running_jobs }) => running_jobs.length > 0);
    const victim = workers.find((worker) => killed?.address === worker.url);
    victim?.process.kill("SIGKILL");
    await victim?.exit;
  };
  const accepted: string[] = [];
  const train = async () => {
    events = [];
    const job = await client.train(model.id, groups, {
      onEvent: (event) => {
        events.push(event);
        if (events.length === 3) killing = kill();
      },
    });
    await killing;
    accepted.push(job.id);
    return job;
  };
  let job = await train();
  // this process may hear of a job too late to kill its worker
  while (killed === undefined) job = await train();
  expect(killed).toMatchObject({ role: "worker", running_jobs: [{ id: job.id, kind: "rl" }] });
  expect(job).toMatchObject({ status: "COMPLETED", step: accepted.length });
  const planned = (events[0]!.data as { num_sequences: number }).num_sequences;
  expect(events.map(({ type }) => type).filter((type) => type !== "training_warning")).toEqual([
    "training_started",
    ...new Array(planned).fill("gradient_step"),
    "training_ended",
  ]);
  const reply = await client.chat({
    model: model.inference_name,
    messages: [{ role: "user", content: "a" }],
    max_tokens: 2,
  });
  expect(reply.choices[0]).toMatchObject({ policy_version: accepted.length });

  const status = await run(["status", "--url", `${api.url}/v1`, "--api-key", KEY]);
  expect(status.code).toBe(0);
  expect(status.out).toMatch(/^api +http/m);
  expect(status.out).toMatch(/^worker +http\S+ +\S+ +up/m);
  const nothing = await run(["status", "--url", "http://127.0.0.1:9/v1", "--api-key", KEY]);
  expect(nothing).toMatchObject({ code: 1, err: expect.stringContaining("is the server running?") });

  const store = await openPostgres(database, null);
  const folder = join(data, "training");
  expect(await violations({ store, folder, accepted, graceMs: 3_600_000 })).toEqual([]);
  await store.close();
});
