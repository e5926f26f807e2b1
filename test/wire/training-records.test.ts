// The record of a job over HTTP: what was sent, what became of it, how long it stays, and using it again.

import { existsSync, mkdirSync, readdirSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { folderBytes } from "../../src/training/files/workspace.ts";
import { toyIds } from "../fakes/toy-encoder.ts";
import { fakeTrainer } from "../fakes/training-service.ts";
import { shared } from "./shared-server.ts";
import { choice, finishedJob, goodGroup, group, jobBody, newModel, trajectory } from "./training-requests.ts";
import { startTrainingServer, type TrainingServer } from "./training-server.ts";

const JOBS = "/v1/preview/training-jobs";
const SFT_JOBS = "/v1/preview/sft-training-jobs";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000, maxBytes: 2 ** 26 }));

async function run(body: unknown, path = JOBS, on: TrainingServer = server) {
  const { status, json } = await on.call("POST", path, body);
  expect(status).toBe(200);
  return finishedJob(on, json.id);
}

const folderOf = (on: TrainingServer, modelId: string) => join(on.bench.folder, "training", "records", modelId);

describe("the record of a job", () => {
  it("lists groups with tasks, rewards, verdicts and failed rollouts", async () => {
    const { id } = await newModel(server);
    const failed = [{ type: "TimeoutError", message: "no reply", traceback: "…" }, "gave up"];
    const body = jobBody(id, [
      { ...group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0)), exceptions: failed, metadata: { level: 2 } },
      group(trajectory("a1", 1), trajectory("a2", 1)),
      { ...group(), metadata: { long: "x".repeat(5000) } },
    ]);
    const job = await run(body);
    const { status, json } = await server.call("GET", `${JOBS}/${job.id}/groups`);
    expect(status).toBe(200);
    expect(json).toMatchObject({ object: "list", first_id: "0", last_id: "2", has_more: false });
    expect(json.data[0]).toMatchObject({
      ...{ id: "0", group: 0, task: "q1", rewards: [1, 0], mean: 0.5, spread: 0.5, verdicts: { trained: 2 } },
      exceptions: [
        { type: "TimeoutError", message: "no reply" },
        { type: null, message: "gave up" },
      ],
      metadata: { level: 2 },
    });
    const report = job.report.trajectories[0];
    expect(json.data[0].trajectories[0]).toEqual({
      ...{ trajectory: 0, reward: 1, status: "trained", reason: null, advantage: report.advantage },
      ...{ tokens: report.num_tokens, trainable_tokens: report.num_trainable_tokens, initial_policy_version: null },
    });
    expect(json.data[1]).toMatchObject({ verdicts: { zero_advantage: 2 }, mean: 1, spread: 0 });
    expect(json.data[1].trajectories[1]).toMatchObject({ status: "zero_advantage", reason: "zero_advantage" });
    expect(json.data[2]).toMatchObject({ rewards: [], mean: null, spread: null, trajectories: [], metadata: null });
  });

  it("pages through many groups", async () => {
    const { id } = await newModel(server);
    const groups = Array.from({ length: 1200 }, (_, i) => group(trajectory("a1 <e>", i), trajectory("a2 <e>", i)));
    const job = await run(jobBody(id, groups));
    const seen: number[] = [];
    for (let after = ""; ; ) {
      const { json } = await server.call("GET", `${JOBS}/${job.id}/groups?limit=700${after}`);
      seen.push(...json.data.map((row: { rewards: number[] }) => row.rewards[0]));
      if (!json.has_more) break;
      after = `&after=${json.last_id}`;
    }
    expect(seen).toEqual(Array.from({ length: 1200 }, (_, i) => i));
    expect((await server.call("GET", `${JOBS}/${job.id}/groups?limit=1001`)).status).toBe(422);
    expect((await server.call("GET", `${JOBS}/${job.id}/groups?after=1199`)).json.data).toEqual([]);
    const last = await server.call("GET", `${JOBS}/${job.id}/groups/1199/trajectories/0`);
    expect(last.json).toMatchObject({ group: 1199, reward: 1199, size: 2 });
  });

  it("shows a trajectory as it was sent, with its verdict and tokens", async () => {
    const { id } = await newModel(server);
    const notes = {
      ...{ metadata: { scenario_id: "s", nested: { list: [1, null, "é"] } }, logs: ["one", "two"] },
      ...{ start_time: "2026-11-17T10:00:00Z", initial_policy_version: 0, final_policy_version: 0 },
    };
    const sent = trajectory("a1 <e>", 1, notes);
    const other = {
      ...group(sent, trajectory("a2 <e>", 0)),
      exceptions: [{ type: "E", message: "m", traceback: "t" }],
    };
    const job = await run(jobBody(id, [goodGroup(), other]));
    const { status, json } = await server.call("GET", `${JOBS}/${job.id}/groups/1/trajectories/0`);
    expect(status).toBe(200);
    const report = job.report.trajectories[2];
    const tokens = toyIds("<s> user NL q1 <e> NL <s> assistant NL a1 <e>");
    expect(json).toMatchObject({
      ...{ object: "trajectory", job_id: job.id, model_id: id, group: 1, trajectory: 0, size: 2, from_step: 0 },
      ...{ reward: 1, advantage: report.advantage, status: "trained", reason: null, message: null },
      ...{ messages_and_choices: sent.messages_and_choices, tools: null, metrics: sent.metrics, ...notes },
      exceptions: [{ type: "E", message: "m", traceback: "t" }],
    });
    expect(json.weight).toBeGreaterThan(0);
    expect(json.sequences).toEqual([
      {
        ...{ tokens, token_strings: "<s> user NL q1 <e> NL <s> assistant NL a1 <e>".split(" ") },
        mask: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
        logprobs: [...Array(9).fill(null), -0.5, -0.5],
        advantages: [...Array(9).fill(0), report.advantage, report.advantage],
        ...{ gradient_step: expect.any(Number), gradient_step_tokens: 2 },
      },
    ]);
    const { json: list } = await server.call("GET", `${JOBS}/${job.id}/groups`);
    const versions = list.data.map((row: { trajectories: { initial_policy_version: number | null }[] }) =>
      row.trajectories.map(({ initial_policy_version }) => initial_policy_version),
    );
    expect(versions).toEqual([
      [null, null],
      [0, null],
    ]);
  });

  it("keeps numbers and texts that JSON in JavaScript would change", async () => {
    const { id } = await newModel(server);
    const raw = JSON.stringify(jobBody(id, [group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0))]))
      .replace('"metadata":{"scenario_id":"s"}', '"metadata":{"id":NaN,\n "text":"\\ud800 \\u001e \\u2028"}')
      .replace('"tools":null', '"tools":[{"type":"function","function":{"name":"q1","parameters":{"x":1.0}}}]');
    const { json: job } = await server.call("POST", JOBS, undefined, { raw });
    await finishedJob(server, job.id);
    const { json } = await server.call("GET", `${JOBS}/${job.id}/groups/0/trajectories/0`);
    expect(json.metadata).toEqual({ id: null, text: "\ud800 \u001e \u2028" });
    expect(json.tools[0].function.parameters).toEqual({ x: 1 });
    const { json: other } = await server.call("GET", `${JOBS}/${job.id}/groups/0/trajectories/1`);
    expect(other.metadata).toEqual({ scenario_id: "s" });
  });

  it("reads a packed body and captured exchanges alike", async () => {
    const { id } = await newModel(server);
    const exchange = {
      request: { messages: [{ role: "user", content: "q2" }] },
      response: { choices: [choice("a1 <e>")] },
    };
    const captured = { exchanges: { chat_completions: [exchange] }, reward: 1 };
    const raw = gzipSync(JSON.stringify(jobBody(id, [group(captured, trajectory("a2 <e>", 0))])));
    const { json: job } = await server.call("POST", JOBS, undefined, { raw, headers: { "content-encoding": "gzip" } });
    await finishedJob(server, job.id);
    const { json: list } = await server.call("GET", `${JOBS}/${job.id}/groups`);
    expect(list.data[0].task).toBe("q2");
    const { json } = await server.call("GET", `${JOBS}/${job.id}/groups/0/trajectories/0`);
    expect(json).toMatchObject({ messages_and_choices: [], exchanges: captured.exchanges, status: "trained" });
  });

  it("keeps the examples of a supervised job as groups of one", async () => {
    const { id } = await newModel(server);
    const messages = [
      { role: "user", content: "q1" },
      { role: "assistant", content: "yes" },
    ];
    const training_data = [{ messages }, { messages: [{ role: "user", content: "q2" }, messages[1]!] }];
    const job = await run({ model_id: id, training_data }, SFT_JOBS);
    const { json } = await server.call("GET", `${JOBS}/${job.id}/groups`);
    expect(json.data.map(({ task }: { task: string }) => task)).toEqual(["q1", "q2"]);
    expect(json.data[1]).toMatchObject({ rewards: [], mean: null, verdicts: { trained: 1 } });
    const { json: example } = await server.call("GET", `${JOBS}/${job.id}/groups/1/trajectories/0`);
    expect(example).toMatchObject({ messages_and_choices: training_data[1]!.messages, reward: null, exceptions: [] });
    expect(example.sequences[0].mask).toContain(1);
  });

  it("is there while the job waits and runs, and after it was cancelled or failed", async () => {
    const slow = await startTrainingServer({ trainer: fakeTrainer(10_000), maxParallelJobs: 1 });
    try {
      const { id } = await newModel(slow);
      const [first, second] = [
        (await slow.call("POST", JOBS, jobBody(id))).json,
        (await slow.call("POST", JOBS, jobBody(id))).json,
      ];
      const groups = async (job: { id: string }) => (await slow.call("GET", `${JOBS}/${job.id}/groups`)).json.data;
      await expect.poll(async () => (await groups(first))[0].verdicts).toEqual({ trained: 2 });
      expect((await groups(second))[0]).toMatchObject({ rewards: [1, 0], verdicts: {} });
      expect((await groups(second))[0].trajectories[0]).toMatchObject({ status: null, tokens: null });
      await slow.call("POST", `${JOBS}/${second.id}/cancel`);
      await slow.call("POST", `${JOBS}/${first.id}/cancel`);
      await finishedJob(slow, first.id);
      expect((await groups(first))[0].verdicts).toEqual({ trained: 2 });
      expect((await groups(second))[0].rewards).toEqual([1, 0]);
    } finally {
      await slow.close();
    }
    const { id } = await newModel(server);
    const corrupt = trajectory("a1 <e>", 1, { messages_and_choices: [choice("a1 <e>", { token_ids: [1] })] });
    const failed = await run(jobBody(id, [group(corrupt, trajectory("a2 <e>", 0))]));
    expect(failed.status).toBe("FAILED");
    const { json } = await server.call("GET", `${JOBS}/${failed.id}/groups/0/trajectories/0`);
    expect(json).toMatchObject({ status: null, sequences: [], messages_and_choices: corrupt.messages_and_choices });
  });

  it("belongs to the owner of the job", async () => {
    const { id } = await newModel(server);
    const job = await run(jobBody(id));
    const paths = [`${JOBS}/${job.id}/groups`, `${JOBS}/${job.id}/groups/0/trajectories/0`];
    for (const path of paths) {
      expect((await server.call("GET", path, undefined, { as: "bob" })).status).toBe(404);
      expect((await server.call("GET", path, undefined, { as: "guest" })).status).toBe(403);
      expect((await server.call("GET", path, undefined, { as: null })).status).toBe(401);
    }
    const again = await server.call("POST", JOBS, { from_job: job.id, dry_run: true }, { as: "bob" });
    expect(again.status).toBe(404);
    for (const path of ["0/trajectories/2", "1/trajectories/0"]) {
      const { status, json } = await server.call("GET", `${JOBS}/${job.id}/groups/${path}`);
      expect({ status, message: json.error.message }).toMatchObject({ status: 404, message: /has no trajectory/ });
    }
    expect((await server.call("GET", `${JOBS}/${job.id}/groups/x/trajectories/0`)).status).toBe(422);
  });
});

describe("numbers per token", () => {
  const path = (job: { id: string }, group: number, index: number) =>
    `${JOBS}/${job.id}/groups/${group}/trajectories/${index}/tokens`;

  it("are those of the trajectory's trained tokens, wherever the batch had it", async () => {
    const counting = await startTrainingServer({ trainer: fakeTrainer(2, { FAKE_TRAINER_NUMBERS: "1" }) });
    try {
      const { id } = await newModel(counting);
      const groups = [
        group(trajectory("a1 <e>", 1), trajectory("a2 a3 a1 <e>", 0), trajectory("a1", 0.5)),
        group(trajectory("a3", 1), trajectory("a2 a1 <e>", 0)),
      ];
      const job = await run(jobBody(id, groups), JOBS, counting);
      const seen: number[] = [];
      for (const [g, t] of [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
      ] as const) {
        const { status, json } = await counting.call("GET", path(job, g, t));
        expect(status).toBe(200);
        expect(json).toMatchObject({
          object: "token_numbers",
          fields: ["new_logprob", "ratio", "clipped", "advantage", "weight", "gradient", "entropy", "reference_kl"],
        });
        const { json: of } = await counting.call("GET", path(job, g, t).replace("/tokens", ""));
        const [{ positions, values }] = json.sequences;
        expect(positions).toEqual(of.sequences[0].mask.flatMap((bit: number, i: number) => (bit === 1 ? [i] : [])));
        expect(values.ratio).toEqual(positions.map(() => null));
        const rows: number[] = values.new_logprob;
        expect(rows).toEqual(positions.map((_: number, i: number) => rows[0]! + i));
        seen.push(...rows);
      }
      // every row belongs to exactly one token
      expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, i) => i));
      expect((await counting.call("GET", path(job, 0, 2))).status).toBe(404);
      expect((await counting.call("GET", path(job, 0, 0), undefined, { as: "bob" })).status).toBe(404);
    } finally {
      await counting.close();
    }
  });

  it("name the sequence and the gradient step that they belong to", async () => {
    const counting = await startTrainingServer({ trainer: fakeTrainer(2, { FAKE_TRAINER_NUMBERS: "1" }) });
    try {
      const { id } = await newModel(counting);
      const [first, second] = [trajectory("a1 <e>", 1), trajectory("a2 a3 <e>", 0)];
      const more = { additional_histories: [{ messages_and_choices: trajectory("a3 a3 a3", 0).messages_and_choices }] };
      const groups = [group({ ...first, ...more }, second), group(trajectory("a3", 1), trajectory("a2 <e>", 0))];
      const experimental_config = { grad_accumulation_sequences: 2 };
      const job = await run(jobBody(id, groups, { experimental_config }), JOBS, counting);
      const { json } = await counting.call("GET", path(job, 0, 0));
      const { json: of } = await counting.call("GET", path(job, 0, 0).replace("/tokens", ""));
      expect(of.sequences).toHaveLength(2);
      expect(json.sequences.map(({ sequence }: { sequence: number }) => sequence)).toEqual([0, 1]);
      const tokensOf = new Map<number, { stated: number; trained: number }>();
      for (const [g, t] of [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
      ] as const) {
        const { json: one } = await counting.call("GET", path(job, g, t).replace("/tokens", ""));
        for (const { gradient_step: step, gradient_step_tokens: stated, mask } of one.sequences) {
          const before = tokensOf.get(step)?.trained ?? 0;
          tokensOf.set(step, { stated, trained: before + mask.filter((bit: number) => bit === 1).length });
        }
      }
      // five sequences, two a step
      expect([...tokensOf.keys()].sort()).toEqual([0, 1, 2]);
      for (const { stated, trained } of tokensOf.values()) expect(trained).toBe(stated);
    } finally {
      await counting.close();
    }
  });

  it("are absent when the trainer keeps none", async () => {
    const { id } = await newModel(server);
    const job = await run(jobBody(id));
    const { status, json } = await server.call("GET", path(job, 0, 0));
    expect({ status, message: json.error.message }).toMatchObject({
      status: 404,
      message: expect.stringMatching(/its trainer kept none/),
    });
  });
});

describe("how long a record stays", () => {
  const tidy = (on: TrainingServer) => on.bench.service.tidyRecords();

  it("goes when it is too old or there are too many, the oldest first; the job stays", async () => {
    const { id: measured } = await newModel(server);
    const { id: one } = await run(jobBody(measured));
    const bytes = 2.5 * folderBytes(join(folderOf(server, measured), one));
    const small = await startTrainingServer({ keepRecords: { bytes, ms: 1000_000 } });
    try {
      const { id } = await newModel(small);
      const jobs = [];
      for (let i = 0; i < 4; i++) {
        const job = await run(jobBody(id), JOBS, small);
        jobs.push(job);
        const at = new Date(Date.now() - (4 - i) * 1000);
        for (const name of ["sent", "prepared"]) utimesSync(join(folderOf(small, id), job.id, name), at, at);
      }
      const old = new Date(Date.now() - 1000_001);
      utimesSync(join(folderOf(small, id), jobs[3].id, "sent"), old, old);
      await tidy(small);
      const statuses = [];
      for (const job of jobs) statuses.push((await small.call("GET", `${JOBS}/${job.id}/groups`)).status);
      expect(statuses).toEqual([410, 200, 200, 410]);
      const gone = await small.call("GET", `${JOBS}/${jobs[0].id}/groups/0/trajectories/0`);
      expect(gone.json.error).toMatchObject({ code: 410, message: expect.stringMatching(/--keep-trajectories/) });
      expect((await small.call("POST", JOBS, { from_job: jobs[0].id, dry_run: true })).status).toBe(410);
      expect((await small.call("GET", `${JOBS}/${jobs[0].id}`)).json.report.trajectories).toHaveLength(2);
    } finally {
      await small.close();
    }
  });

  it("is not kept at all with a bound of 0", async () => {
    const none = await startTrainingServer({ keepRecords: { bytes: 0, ms: 1000 } });
    try {
      const { id } = await newModel(none);
      const job = await run(jobBody(id), JOBS, none);
      expect((await none.call("GET", `${JOBS}/${job.id}/groups`)).status).toBe(410);
      expect(existsSync(join(none.bench.folder, "training", "records"))).toBe(false);
    } finally {
      await none.close();
    }
  });

  it("goes with its model, and is not made for a dry run or a refused body", async () => {
    const { id } = await newModel(server);
    const job = await run(jobBody(id));
    expect(readdirSync(folderOf(server, id))).toEqual([job.id]);
    await server.call("POST", JOBS, jobBody(id, [goodGroup()], { dry_run: true }));
    await server.call("POST", JOBS, jobBody(id, [goodGroup(), { trajectories: [{ reward: "x" }] }]));
    const headers = { "idempotency-key": "k" };
    const first = (await server.call("POST", JOBS, jobBody(id), { headers })).json;
    const second = (await server.call("POST", JOBS, jobBody(id), { headers })).json;
    expect(second.id).toBe(first.id);
    await finishedJob(server, first.id);
    expect(readdirSync(folderOf(server, id)).sort()).toEqual([job.id, first.id].sort());
    await server.call("DELETE", `/v1/preview/models/${id}`);
    expect(existsSync(folderOf(server, id))).toBe(false);
  });

  it("is not served half written, and what belongs to no job goes", async () => {
    const { id } = await newModel(server);
    const job = await run(jobBody(id));
    const folder = join(folderOf(server, id), job.id);
    truncateSync(join(folder, "prepared"), 40);
    expect((await server.call("GET", `${JOBS}/${job.id}/groups`)).json.data[0]).toMatchObject({ verdicts: {} });
    truncateSync(join(folder, "sent"), 40);
    expect((await server.call("GET", `${JOBS}/${job.id}/groups`)).status).toBe(410);
    const stray = join(folderOf(server, id), "0f0f0f0f-0000-4000-8000-000000000000");
    const fresh = join(folderOf(server, id), "0f0f0f0f-0000-4000-8000-000000000001");
    for (const path of [stray, fresh]) {
      mkdirSync(path);
      writeFileSync(join(path, "sent"), "half");
    }
    const old = new Date(Date.now() - 7200_000);
    utimesSync(join(stray, "sent"), old, old);
    await tidy(server);
    expect([stray, fresh, folder].map((path) => existsSync(path))).toEqual([false, true, true]);
  });
});

describe("using the data of a job again", () => {
  it("gives the dry run of the same body, with the job's settings or others", async () => {
    const { id } = await newModel(server);
    const groups = [group(trajectory("a1 <e>", 1), trajectory("a2 a3 <e>", 0), trajectory("a1", 0.5)), goodGroup()];
    const experimental_config = { scale_rewards: false, learning_rate: 1e-4 };
    const dry = (await server.call("POST", JOBS, jobBody(id, groups, { experimental_config, dry_run: true }))).json;
    const job = await run(jobBody(id, groups, { experimental_config }));
    const again = (await server.call("POST", JOBS, { from_job: job.id.toUpperCase(), dry_run: true })).json;
    expect(again).toEqual({ ...dry, from_step: 1 });
    const config = { advantage_balance: 0.5 };
    const other = (await server.call("POST", JOBS, { from_job: job.id, dry_run: true, config })).json;
    const body = jobBody(id, groups, { experimental_config: config, dry_run: true });
    expect(other).toEqual((await server.call("POST", JOBS, body)).json);
    expect(other.trajectories[0].advantage).not.toEqual(again.trajectories[0].advantage);
  });

  it("takes other rewards for some trajectories, and keeps them with the new job", async () => {
    const { id } = await newModel(server);
    const made = (reward: number) => [group(trajectory("a1 <e>", reward), trajectory("a2 <e>", 1)), goodGroup()];
    const job = await run(jobBody(id, made(1)));
    const rewards = [{ group: 0, trajectory: 0, reward: 0.25 }];
    const dry = (await server.call("POST", JOBS, { from_job: job.id, dry_run: true, rewards })).json;
    expect(dry).toEqual((await server.call("POST", JOBS, jobBody(id, made(0.25), { dry_run: true }))).json);
    const again = await run({ from_job: job.id, rewards });
    const { json: list } = await server.call("GET", `${JOBS}/${again.id}/groups`);
    expect(list.data.map((row: { rewards: number[] }) => row.rewards)).toEqual([
      [0.25, 1],
      [1, 0],
    ]);
    const { json: kept } = await server.call("GET", `${JOBS}/${again.id}/groups/0/trajectories/0`);
    expect(kept).toMatchObject({ reward: 0.25, metadata: { scenario_id: "s" } });
    for (const [wrong, reason] of [
      [[{ group: 0, trajectory: 2, reward: 1 }], /no trajectory 2 in group 0/],
      [[{ group: 0, trajectory: 0, reward: "1" }], /rewards/],
    ] as const) {
      const { status, json } = await server.call("POST", JOBS, { from_job: job.id, rewards: wrong });
      expect({ status, message: json.error.message }).toMatchObject({
        status: 422,
        message: expect.stringMatching(reason),
      });
    }
  });

  it("trains it once more, on another model, with a record of its own", async () => {
    const { id } = await newModel(server);
    const { id: other } = await newModel(server);
    const job = await run(jobBody(id));
    const again = await run({ from_job: job.id, model_id: other });
    expect(again).toMatchObject({ status: "COMPLETED", model_id: other, report: { totals: job.report.totals } });
    const [one, two] = await Promise.all(
      [job, again].map(async (of) => (await server.call("GET", `${JOBS}/${of.id}/groups`)).json.data),
    );
    expect(two).toEqual(one);
  });

  it("takes examples again, and says what does not fit", async () => {
    const { id } = await newModel(server);
    const messages = [
      { role: "user", content: "q1" },
      { role: "assistant", content: "yes" },
    ];
    const sft = await run({ model_id: id, training_data: [{ messages }] }, SFT_JOBS);
    const dry = (await server.call("POST", SFT_JOBS, { from_job: sft.id, dry_run: true })).json;
    expect(dry.examples).toMatchObject([{ status: "trained" }]);
    const refusal = async (path: string, body: object) => {
      const { status, json } = await server.call("POST", path, body);
      return `${status} ${json.error.message}`;
    };
    expect(await refusal(JOBS, { from_job: sft.id, dry_run: true })).toMatch(/^422 .*sft-training-jobs/);
    expect(await refusal(JOBS, { from_job: sft.id, trajectory_groups: [] })).toMatch(/^422 .*not both/);
    expect(await refusal(JOBS, { from_job: 7 })).toMatch(/^422 /);
    expect(await refusal(JOBS, { from_job: "0f0f0f0f-0000-4000-8000-000000000000" })).toMatch(/^404 /);
    expect(await refusal(JOBS, { from_job: sft.id, config: { learning_rate: "x" } })).toMatch(/^422 .*config/);
  });
});
