// Reading the record of a job over HTTP: what was sent, what became of it, and the numbers of its tokens.

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { toyIds } from "../../support/toy-encoder.ts";
import { fakeTrainer } from "../../support/training-service.ts";
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

  it("finds trajectories in which a text is said", async () => {
    const { id } = await newModel(server);
    const groups = Array.from({ length: 30 }, (_, i) =>
      group(trajectory(i % 10 === 3 ? "a1 <e>" : "a2 <e>", 1), trajectory(i === 13 ? "a1 <e>" : "a2 <e>", 0)),
    );
    const job = await run(jobBody(id, groups));
    const search = async (query: string) => (await server.call("GET", `${JOBS}/${job.id}/matches?${query}`)).json;
    expect(await search("text=A1")).toEqual({
      object: "list",
      data: [
        { id: "3", group: 3, trajectories: [0] },
        { id: "13", group: 13, trajectories: [0, 1] },
      ],
      ...{ searched_to: 19, has_more: true },
    });
    expect(await search("text=A1&after=19")).toMatchObject({
      ...{ data: [{ group: 23, trajectories: [0] }], searched_to: 29, has_more: false },
    });
    expect(await search("text=A1&after=29")).toMatchObject({ data: [], searched_to: null, has_more: false });
    expect(await search("text=nothing%20like%20it&limit=200")).toMatchObject({ data: [], searched_to: 29 });
    for (const query of ["", "text=", `text=${"x".repeat(1001)}`, "text=a&limit=201"]) {
      expect((await server.call("GET", `${JOBS}/${job.id}/matches?${query}`)).status).toBe(422);
    }
    expect((await server.call("GET", `${JOBS}/${crypto.randomUUID()}/matches?text=a`)).status).toBe(404);
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

  it("names the turn that was rated as the task, not the first of the conversation", async () => {
    const { id } = await newModel(server);
    const before = [
      { role: "user", content: "q1" },
      { role: "assistant", content: "a1" },
    ];
    const rated = (reply: string, reward: number) =>
      trajectory(reply, reward, {
        messages_and_choices: [...before, { role: "user", content: "q2" }, choice(reply)],
      });
    // of several sampled replies, the first is what the task asked for
    const agent = (reply: string, reward: number) =>
      trajectory(reply, reward, {
        messages_and_choices: [
          ...[{ role: "user", content: "q3" }, choice(reply)],
          ...[{ role: "user", content: "q4" }, choice(reply)],
        ],
      });
    const groups = [group(rated("a1 <e>", 1), rated("a2 <e>", 0)), group(agent("a1 <e>", 1), agent("a2 <e>", 0))];
    const job = await run(jobBody(id, groups));
    const { json } = await server.call("GET", `${JOBS}/${job.id}/groups`);
    expect(json.data.map(({ task }: { task: string }) => task)).toEqual(["q2", "q3"]);
  });

  it("shows the tokens of what was left out before it was tokenised", async () => {
    const { id } = await newModel(server);
    const stale = { initial_policy_version: 0 };
    const groups = [
      group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 1)),
      group(trajectory("a1 <e>", 1, stale), trajectory("a2 <e>", 0, stale)),
    ];
    await run(jobBody(id, [goodGroup()]));
    const job = await run(jobBody(id, groups, { experimental_config: { max_steps_off_policy: 0 } }));
    const dry = await server.call("POST", JOBS, {
      ...{ from_job: job.id, dry_run: true, config: { max_steps_off_policy: 9 } },
    });
    for (const [g, status] of [
      [0, "zero_advantage"],
      [1, "stale"],
    ] as const) {
      const { json } = await server.call("GET", `${JOBS}/${job.id}/groups/${g}/trajectories/1`);
      expect(json).toMatchObject({ status, advantage: 0, job_status: "COMPLETED" });
      const seen = dry.json.trajectories.find(
        (one: { group: number; trajectory: number }) => one.group === g && one.trajectory === 1,
      );
      expect(json.sequences).toHaveLength(1);
      const { tokens, mask, logprobs } = json.sequences[0];
      expect({ tokens, mask, logprobs }).toEqual(seen.sequences[0]);
      expect(mask).toContain(1);
      expect(json.sequences[0].advantages.every((value: number) => value === 0)).toBe(true);
    }
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
