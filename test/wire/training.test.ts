// The training endpoints as clients use them: the call sequence and shapes of an ART client, and every refusal.

import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FlywheelClient } from "../../src/client/client.ts";
import { toyIds } from "../toy-encoder.ts";
import { startTrainingServer, type TrainingServer } from "./training-server.ts";

let server: TrainingServer;
beforeAll(async () => {
  server = await startTrainingServer({ maxOpenJobs: 1000 });
});
afterAll(() => server.close());

let count = 0;
const modelBody = () => ({
  entity: null,
  project: "p",
  name: `m${count++}`,
  base_model: "tiny",
  return_existing: true,
});
async function newModel(): Promise<{ id: string; name: string }> {
  const { status, json } = await server.call("POST", "/v1/preview/models", modelBody());
  expect(status).toBe(200);
  return json;
}

/** A choice as the chat endpoint of this server returns it and an ART client sends it back, nulls spelled out. */
const choice = (reply: string, fields: Record<string, unknown> = {}) => ({
  finish_reason: "stop",
  index: 0,
  logprobs: {
    content: toyIds(reply).map((id) => ({ token: `token_id:${id}`, logprob: -0.5, bytes: null, top_logprobs: [] })),
    refusal: null,
  },
  message: { content: reply, refusal: null, role: "assistant", annotations: null, audio: null, tool_calls: null },
  ...fields,
});
const trajectory = (reply: string, reward: number, fields: Record<string, unknown> = {}) => ({
  messages_and_choices: [{ role: "user", content: "q1" }, choice(reply)],
  tools: null,
  additional_histories: [],
  reward,
  initial_policy_version: null,
  final_policy_version: null,
  metrics: { duration: 1.5, solved: true },
  metadata: { scenario_id: "s" },
  logs: [],
  ...fields,
});
const group = (...trajectories: unknown[]) => ({ trajectories, exceptions: [], metadata: {}, metrics: {}, logs: [] });
const goodGroup = () => group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0));
/** What an ART client sends when nothing was configured. */
const artConfig = {
  ...{ advantage_balance: 0, epsilon: null, epsilon_high: null, importance_sampling_level: "token" },
  ...{ kimi_k2_tau: null, kl_penalty_coef: 0, kl_penalty_reference_step: null, kl_penalty_step_lag: null },
  ...{ kl_ref_adapter_path: null, learning_rate: 5e-6, logprob_calculation_chunk_size: 1024, loss_fn: "cispo" },
  ...{ mask_prob_ratio: false, max_negative_advantage_importance_sampling_weight: null, normalize_advantages: true },
  ...{ num_trajectories_learning_rate_multiplier_power: 0, packed_sequence_length: null, plot_tensors: false },
  ...{ ppo: false, precalculate_logprobs: false, scale_rewards: true, truncated_importance_sampling: null },
};
const jobBody = (modelId: string, groups: unknown[] = [goodGroup()], more: object = {}) => ({
  model_id: modelId,
  trajectory_groups: groups,
  ...more,
});

async function finishedJob(id: string) {
  for (;;) {
    const { json } = await server.call("GET", `/v1/preview/training-jobs/${id}`);
    if (!["PENDING", "RUNNING"].includes(json.status)) return json;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
/** Polls as an ART client does: the cursor does not move past training_started. */
async function artPoll(id: string) {
  const seen: { type: string; data: Record<string, number> }[] = [];
  let after: string | null = null;
  for (;;) {
    const query = after === null ? "" : `?after=${after}`;
    const { status, json } = await server.call("GET", `/v1/preview/training-jobs/${id}/events${query}`);
    expect(status).toBe(200);
    for (const event of json.data) {
      if (event.type === "training_started") {
        expect(Number.isInteger(event.data.num_sequences)).toBe(true);
        continue;
      }
      seen.push(event);
      after = event.id;
      if (event.type !== "gradient_step") return seen;
      for (const value of Object.values(event.data)) expect(typeof value).toBe("number");
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("the life of a policy, as an ART client drives it", () => {
  it("register, train, read the step, log, prune, delete", async () => {
    const body = modelBody();
    const { json: model } = await server.call("POST", "/v1/preview/models/", body);
    expect(model).toMatchObject({ entity: "ann", project: "p", name: body.name, base_model: "tiny", run_id: null });
    expect((await server.call("POST", "/v1/preview/models", body)).json.id).toBe(model.id);
    const checkpoints = `/v1/preview/models/${model.id}/checkpoints`;
    const newest = async () => (await server.call("GET", `${checkpoints}?limit=1&order=desc`)).json;
    expect((await newest()).data[0].step).toBe(0);

    for (let step = 1; step <= 3; step++) {
      const answer = await server.call(
        "POST",
        "/v1/preview/training-jobs",
        jobBody(model.id, undefined, { experimental_config: artConfig }),
      );
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.json)).toEqual(
        expect.arrayContaining(["id", "model_id", "status", "progress", "error_message", "training_start"]),
      );
      const events = await artPoll(answer.json.id);
      expect(events.map(({ type }) => type)).toEqual(["gradient_step", "gradient_step", "training_ended"]);
      expect(events[0]!.data.num_sequences).toBe(2);
      expect((await newest()).data[0].step).toBe(step);
      expect(server.bench.service.policies.find(`wandb-artifact:///ann/p/${body.name}`, "1")?.step).toBe(step);
    }
    const log = await server.call("POST", `/v1/preview/models/${model.id}/log`, {
      ...{ model_id: model.id, split: "val", trajectory_groups: [goodGroup()] },
    });
    expect(log.status).toBe(200);
    expect((await newest()).data[0].metrics).toMatchObject({ "val/reward": 0.5, "val/solved": 1, "val/duration": 1.5 });

    expect((await server.call("DELETE", checkpoints, { steps: [0, 1, 2, 3, 9] })).json).toEqual({
      deleted_count: 3,
      not_found_steps: [9],
      kept_steps: [3],
    });
    expect((await server.call("DELETE", `/v1/preview/models/${model.id}`)).json).toEqual({
      model_id: model.id,
      deleted_checkpoints: 1,
      deleted_run: true,
    });
    expect((await server.call("GET", checkpoints)).status).toBe(404);
  });

  it("pages checkpoints by cursor and finds one by number", async () => {
    const { id } = await newModel();
    for (let i = 0; i < 2; i++) {
      await finishedJob((await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json.id);
    }
    const steps: number[] = [];
    let after = "";
    for (;;) {
      const { json } = await server.call("GET", `/v1/preview/models/${id}/checkpoints?limit=2&after=${after}`);
      expect(json.object).toBe("list");
      steps.push(...json.data.map(({ step }: { step: number }) => step));
      if (!json.has_more) break;
      after = json.data.at(-1).id;
      expect(json.last_id).toBe(after);
    }
    expect(steps).toEqual([0, 1, 2]);
    const last = (await server.call("GET", `/v1/preview/models/${id}/checkpoints/latest`)).json;
    expect(last.step).toBe(2);
    const empty = await server.call("GET", `/v1/preview/models/${id}/checkpoints?after=${last.id}`);
    expect(empty.json).toEqual({ object: "list", data: [], first_id: "", last_id: "", has_more: false });
    expect((await server.call("GET", `/v1/preview/models/${id}/checkpoints/7`)).status).toBe(404);
    expect((await server.call("GET", `/v1/preview/models/${id}/checkpoints?limit=101`)).status).toBe(422);
  });

  it("forks and rolls back", async () => {
    const source = await newModel();
    await finishedJob((await server.call("POST", "/v1/preview/training-jobs", jobBody(source.id))).json.id);
    const fork = await server.call("POST", "/v1/preview/models", {
      ...{ project: "p", name: `fork${count++}`, from: { model_id: source.id, step: 1 } },
    });
    expect(fork.json.base_model).toBe("tiny");
    expect((await server.call("GET", `/v1/preview/models/${fork.json.id}/checkpoints/latest`)).json.step).toBe(1);
    const rolled = await server.call("POST", `/v1/preview/models/${source.id}/rollback`, { step: 0 });
    expect(rolled.json).toMatchObject({ step: 2 });
    expect((await server.call("POST", `/v1/preview/models/${source.id}/rollback`, {})).status).toBe(422);
    expect((await server.call("POST", `/v1/preview/models/${source.id}/rollback`, { step: 50 })).status).toBe(404);
  });
});

describe("jobs", () => {
  it("lists, reports every trajectory, and keeps the order of submission", async () => {
    const { id } = await newModel();
    const tooLong = `a1${" a2".repeat(70)}`;
    const groups = [
      group(
        trajectory("a1 <e>", 1),
        trajectory("a2 <e>", 0),
        trajectory("a1", 0.5),
        trajectory("a1", 0, {
          messages_and_choices: [{ role: "user", content: "q1" }, choice("a1", { logprobs: null })],
        }),
        trajectory("a1", 1, { initial_policy_version: -9 }),
        trajectory(tooLong, 1),
        trajectory("a1", 0, { messages_and_choices: [choice("a1", { token_ids: [999] })] }),
      ),
    ];
    const body = jobBody(id, groups, { experimental_config: { max_steps_off_policy: 4 } });
    const job = (await server.call("POST", "/v1/preview/training-jobs", body)).json;
    const second = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json;
    const done = await finishedJob(job.id);
    expect(done.status).toBe("COMPLETED");
    expect(done.report.trajectories.map(({ status }: { status: string }) => status)).toEqual([
      ...["trained", "trained", "zero_advantage", "no_logprobs", "stale", "too_long", "token_mismatch"],
    ]);
    expect(done.report.trajectories[3]).toMatchObject({
      reason: "no_logprobs",
      message: expect.stringContaining("logprobs"),
    });
    await finishedJob(second.id);
    const list = (await server.call("GET", `/v1/preview/training-jobs?model_id=${id}&limit=1`)).json;
    expect(list.data.map((item: { id: string }) => item.id)).toEqual([second.id]);
    expect(list.has_more).toBe(true);
    const rest = (await server.call("GET", `/v1/preview/training-jobs?model_id=${id}&after=${list.last_id}`)).json;
    expect(rest.data.map((item: { id: string }) => item.id)).toEqual([job.id]);
    expect((await server.call("GET", "/v1/preview/training-jobs?status=DONE")).status).toBe(422);
  });

  it("shows tokens, mask and advantage without training anything (dry_run)", async () => {
    const { id } = await newModel();
    const groups = [group(trajectory("a1 <e>", 1), trajectory("a2 a3 <e>", 0), trajectory("a1", 0.5))];
    const { status, json } = await server.call(
      "POST",
      "/v1/preview/training-jobs",
      jobBody(id, groups, { dry_run: true }),
    );
    expect(status).toBe(200);
    expect(json.trajectories[0]).toMatchObject({
      status: "trained",
      reason: null,
      tokens: toyIds("<s> user NL q1 <e> NL <s> assistant NL a1 <e>"),
      mask: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    });
    expect(json.trajectories[0].advantage).toBeCloseTo(1, 5);
    expect(json.trajectories[2]).toMatchObject({ reason: "zero_advantage", advantage: 0 });
    expect(json.trajectories[2].tokens).toHaveLength(10);
    expect((await server.call("GET", `/v1/preview/training-jobs?model_id=${id}`)).json.data).toEqual([]);
    expect(readdirSync(join(server.bench.folder, "training", "jobs"))).toEqual([]);
  });

  it("says before training what does not fit the memory for it", async () => {
    const small = await startTrainingServer({ maxTrainedLength: 11 });
    try {
      const model = { project: "demo", name: "agent", base_model: "tiny" };
      const { id } = (await small.call("POST", "/v1/preview/models", model)).json;
      const groups = [group(trajectory("a1 <e>", 1), trajectory("a2 a3 <e>", 1), trajectory("a3 <e>", 0))];
      const body = jobBody(id, groups, { dry_run: true });
      const { trajectories } = (await small.call("POST", "/v1/preview/training-jobs", body)).json;
      expect(trajectories.map(({ status }: { status: string }) => status)).toEqual(["trained", "too_long", "trained"]);
      expect(trajectories[1].message).toMatch(/longer than 11 tokens, the most that fits the memory for training/);
      expect(trajectories[0].advantage).toBeCloseTo(2 / 3, 5);
    } finally {
      await small.close();
    }
  });

  it("shows what the chat template refuses, in a job and in a preview", async () => {
    const { id } = await newModel();
    const alien = [{ role: "alien", content: "q1" }, choice("a1 <e>")];
    const groups = [goodGroup(), group(trajectory("", 1, { messages_and_choices: alien }), trajectory("a1 <e>", 0))];
    const dry = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups))).json;
    const done = await finishedJob(job.id);
    expect([dry.status, done.status]).toEqual([200, "COMPLETED"]);
    for (const { trajectories } of [dry.json, done.report]) {
      expect(trajectories[2]).toMatchObject({ reason: "unrenderable", message: expect.stringContaining("no aliens") });
      expect(trajectories[3].status).toBe("trained");
    }
    const examples = [
      { messages: [alien[0], { role: "assistant", content: "a1" }] },
      {
        messages: [
          { role: "user", content: "q1" },
          { role: "assistant", content: "a1" },
        ],
      },
    ];
    const sft = { model_id: id, training_data: examples };
    const preview = await server.call("POST", "/v1/preview/sft-training-jobs", { ...sft, dry_run: true });
    expect(preview.json.examples.map((e: { status: string }) => e.status)).toEqual(["unrenderable", "trained"]);
    const trained = await finishedJob((await server.call("POST", "/v1/preview/sft-training-jobs", sft)).json.id);
    expect(trained.report.totals).toMatchObject({ num_trajectories: 2, num_dropped_trajectories: 1 });
  });

  it("has finite numbers for the largest rewards and metrics, in events and in what is logged", async () => {
    const { id } = await newModel();
    const large = { metrics: { size: 1e100 } };
    const groups = [group(...[1e100, -1e100, 1e100].map((reward) => trajectory("a1 <e>", reward, large)))];
    for (const scale_rewards of [true, false]) {
      const body = jobBody(id, groups, { experimental_config: { scale_rewards } });
      // fails on a value that is no number
      await artPoll((await server.call("POST", "/v1/preview/training-jobs", body)).json.id);
    }
    const log = { split: "val", trajectory_groups: groups };
    const { metrics } = (await server.call("POST", `/v1/preview/models/${id}/log`, log)).json;
    for (const value of Object.values(metrics)) expect(typeof value).toBe("number");
  });

  it("refuses a learning rate that is no number before anything is trained", async () => {
    const { id } = await newModel();
    const config = { grad_accumulation_sequences: "all", num_trajectories_learning_rate_multiplier_power: 2000 };
    const body = jobBody(id, undefined, { experimental_config: config });
    const dry = await server.call("POST", "/v1/preview/training-jobs", { ...body, dry_run: true });
    expect([dry.status, dry.json.detail[0].loc]).toEqual([422, ["body", "experimental_config"]]);
    const job = await finishedJob((await server.call("POST", "/v1/preview/training-jobs", body)).json.id);
    expect(job).toMatchObject({ status: "FAILED", step: null, error_message: dry.json.detail[0].msg });
    expect((await artPoll(job.id)).map(({ type }) => type)).toEqual(["training_failed"]);
  });

  it("pushes the events when asked for a stream, and goes on behind Last-Event-ID", async () => {
    const { id } = await newModel();
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id))).json;
    const read = async (headers: Record<string, string>) => {
      const response = await fetch(`${server.url}/v1/preview/training-jobs/${job.id}/events`, {
        headers: { authorization: "Bearer ann", accept: "text/event-stream", ...headers },
      });
      expect(response.headers.get("content-type")).toContain("text/event-stream");
      return (await response.text())
        .split("\n\n")
        .filter((block) => block.startsWith("id: "))
        .map((block) => JSON.parse(block.split("\n")[2]!.slice("data: ".length)));
    };
    const events = await read({});
    expect(events.map(({ type }) => type)).toEqual([
      ...["training_started", "gradient_step", "gradient_step", "training_ended"],
    ]);
    expect(await read({ "last-event-id": events[1].id })).toEqual(events.slice(2));
    const path = `/v1/preview/training-jobs/${job.id}/events`;
    const headers = { accept: "text/event-stream", "last-event-id": events[3].id };
    expect(await server.call("GET", path, undefined, { headers })).toMatchObject({ status: 204, json: null });
    const polled = await server.call("GET", `/v1/preview/training-jobs/${job.id}/events?limit=100`);
    expect(polled.json.data).toEqual(events);
    expect((await server.call("GET", `/v1/preview/training-jobs/${job.id}/events?after=x`)).status).toBe(404);
  });

  it("are gone with their model, and who follows one hears its end", async () => {
    const { id } = await newModel();
    const over = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json;
    await finishedJob(over.id);
    const many = group(...Array.from({ length: 50 }, (_, i) => trajectory("a1 <e>", i % 2)));
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, [many, many]))).json;
    const stream = await fetch(`${server.url}/v1/preview/training-jobs/${job.id}/events`, {
      headers: { authorization: "Bearer ann", accept: "text/event-stream" },
    });
    expect((await server.call("DELETE", `/v1/preview/models/${id}`)).status).toBe(200);
    expect(await stream.text()).toMatch(/training_failed.*its model was deleted/);
    for (const gone of [over.id, job.id]) {
      for (const path of [gone, `${gone}/events`]) {
        expect((await server.call("GET", `/v1/preview/training-jobs/${path}`)).status).toBe(404);
      }
    }
    expect((await server.call("GET", `/v1/preview/training-jobs?model_id=${id}`)).json.data).toEqual([]);
  });

  it("cancels, as often as one likes", async () => {
    const { id } = await newModel();
    const many = group(...Array.from({ length: 50 }, (_, i) => trajectory("a1 <e>", i % 2)));
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, [many, many]))).json;
    const cancel = () => server.call("POST", `/v1/preview/training-jobs/${job.id}/cancel`);
    expect((await cancel()).status).toBe(200);
    expect(await finishedJob(job.id)).toMatchObject({ status: "CANCELLED", step: null });
    expect((await cancel()).json.status).toBe("CANCELLED");
    expect((await artPoll(job.id)).at(-1)).toMatchObject({
      type: "training_failed",
      data: { error_message: expect.stringContaining("cancelled") },
    });
  });

  it("is created once per Idempotency-Key", async () => {
    const { id } = await newModel();
    const post = (groups: unknown[], key: string) =>
      server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups), { headers: { "idempotency-key": key } });
    const first = await post([], "k1");
    expect((await post([], "k1")).json.id).toBe(first.json.id);
    expect((await post([], "k2")).json.id).not.toBe(first.json.id);
    const clash = await post([goodGroup()], "k1");
    expect(clash.status).toBe(422);
    expect(clash.json.detail[0].msg).toMatch(/another body/);
  });

  it("trains from examples (SFT)", async () => {
    const { id } = await newModel();
    const example = (reply: string) => ({
      messages: [
        { role: "user", content: "q1" },
        { role: "assistant", content: reply },
      ],
    });
    const body = {
      model_id: id,
      training_data: [example("a1"), example("a2"), example("a3"), example(`a1${" a2".repeat(90)}`)],
      config: { batch_size: "auto", learning_rate: [1e-3, 5e-4], assistant_turns: "last", metric_logging: null },
      experimental_config: null,
    };
    const preview = (await server.call("POST", "/v1/preview/sft-training-jobs", { ...body, dry_run: true })).json;
    expect(preview).toMatchObject({ dry_run: true, from_step: 0, num_sequences: 3 });
    expect(preview.examples.map((entry: { status: string }) => entry.status)).toEqual([
      ...["trained", "trained", "trained", "too_long"],
    ]);
    expect(preview.examples[0].tokens.slice(-2)).toEqual(toyIds("a1 <e>"));
    expect(preview.examples[0].mask.slice(-3)).toEqual([0, 1, 1]);
    expect((await server.call("GET", `/v1/preview/training-jobs?model_id=${id}`)).json.data).toEqual([]);
    const job = (await server.call("POST", "/v1/preview/sft-training-jobs", body)).json;
    const events = await artPoll(job.id);
    expect(events.map(({ type }) => type)).toEqual(["gradient_step", "gradient_step", "training_ended"]);
    expect(events.slice(0, 2).map(({ data }) => data.learning_rate)).toEqual([1e-3, 5e-4]);
    expect(events[0]!.data).toMatchObject({ num_trajectories: 4, num_dropped_trajectories: 1 });
    const done = await finishedJob(job.id);
    expect(done).toMatchObject({ kind: "sft", status: "COMPLETED" });
    expect(done.report.examples[3].status).toBe("too_long");
    const bad = await server.call("POST", "/v1/preview/sft-training-jobs", {
      ...{ model_id: id, training_data: [{ messages: [{ role: "user", content: "q1" }] }], training_data_url: "x" },
    });
    expect(bad.json.detail.map((issue: { loc: unknown[] }) => issue.loc.join("."))).toEqual([
      ...["body.training_data.0.messages", "body.training_data_url"],
    ]);
  });
});

it("a quota that is used up is a 429 that clients do not repeat", async () => {
  const full = await startTrainingServer({ maxBytesPerOwner: 10 });
  let requests = 0;
  const client = new FlywheelClient({
    ...{ baseUrl: full.url, apiKey: "ann" },
    fetch: (...args) => {
      requests++;
      return fetch(...args);
    },
  });
  try {
    const { id } = (await full.call("POST", "/v1/preview/models", modelBody())).json;
    const refused = await full.call("POST", "/v1/preview/training-jobs", jobBody(id, []));
    expect(refused.status).toBe(429);
    expect([refused.headers.get("x-should-retry"), refused.headers.get("retry-after")]).toEqual(["false", null]);
    await expect(client.submit(id, [], { idempotencyKey: "k" })).rejects.toThrow(/429: Checkpoints use/);
    expect(requests).toBe(1);
  } finally {
    await full.close();
  }
});

describe("bodies", () => {
  it("takes gzip, defaults left out, unknown fields, messages with log-probabilities and captured exchanges", async () => {
    const { id } = await newModel();
    const logprobs = {
      content: [
        { token: "a1", logprob: -1 },
        { token: "", logprob: -1 },
      ],
    };
    const groups = [
      {
        trajectories: [
          { messages_and_choices: [{ role: "user", content: "q1" }, choice("a1 <e>")], reward: 1, novel: {} },
          {
            messages_and_choices: [
              { role: "user", content: "q1" },
              { role: "assistant", content: "a1", logprobs },
            ],
          },
          {
            reward: 0.25,
            exchanges: {
              chat_completions: [
                {
                  request: { model: "m", messages: [{ role: "user", content: "q1" }] },
                  response: {
                    prompt_token_ids: toyIds("q1"),
                    choices: [choice("a1 <e>", { token_ids: toyIds("a1 <e>") })],
                  },
                },
                {
                  request: { model: "m", messages: [] },
                  response: { prompt_token_ids: toyIds("q1 a1 <e> q2"), choices: [choice("a2 <e>")] },
                },
              ],
            },
          },
        ],
      },
      {},
    ];
    const raw = gzipSync(JSON.stringify({ trajectory_groups: groups, dry_run: true, model_id: id, extra: [1] }));
    const { status, json } = await server.call("POST", "/v1/preview/training-jobs", undefined, {
      raw,
      headers: { "content-encoding": "gzip" },
    });
    expect(status).toBe(200);
    expect(json.trajectories.map((t: { status: string }) => t.status)).toEqual(["trained", "trained", "trained"]);
    expect(json.trajectories[1].tokens.slice(-2)).toEqual(toyIds("a1 <e>"));
    expect(json.trajectories[2].sequences).toHaveLength(1);
    expect(json.trajectories[2].mask).toEqual([0, 1, 1, 0, 1, 1]);
  });

  it("knows tokens by their bytes, whatever their text looks like", async () => {
    const { id } = await newModel();
    const entry = (token: string, bytes: string | null) => ({
      ...{ token, logprob: -1, top_logprobs: [] },
      bytes: bytes === null ? null : [...Buffer.from(bytes)],
    });
    const logprobs = { content: [entry("a1", "a2"), entry("a3", null), entry("", null)] };
    const groups = [group(trajectory("", 1, { messages_and_choices: [choice("a1", { logprobs })] }))];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    expect(json.trajectories[0].tokens.slice(-3)).toEqual(toyIds("a2 a3 <e>"));
    expect(json.metrics.num_retokenised).toBe(0);
  });

  it("needs no token texts where the ids are given", async () => {
    const { id } = await newModel();
    const replies = [
      choice("a1", { token_ids: toyIds("a1 <e>"), logprobs: { content: [{ logprob: -1 }, { logprob: -1 }] } }),
      choice("a1", { logprobs: { content: toyIds("a1 <e>").map((token_id) => ({ token_id, logprob: -1 })) } }),
    ];
    const groups = [group(...replies.map((reply, i) => trajectory("", i, { messages_and_choices: [reply] })))];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    for (const { tokens } of json.trajectories) expect(tokens.slice(-2)).toEqual(toyIds("a1 <e>"));
  });

  it("trains every choice of a captured exchange, with and without its prompt's ids", async () => {
    const { id } = await newModel();
    const request = { messages: [{ role: "user", content: "q1" }] };
    const choices = [choice("a1 <e>"), choice("a2 a3 <e>")];
    const captured = (response: object) => ({ exchanges: { chat_completions: [{ request, response }] } });
    const groups = [
      group(
        { ...captured({ choices, prompt_token_ids: toyIds("q1") }), reward: 1 },
        { ...captured({ choices }), reward: 0, messages_and_choices: [], tools: null, additional_histories: [] },
        // nothing was captured: the messages count
        trajectory("a1 <e>", 0.25, { exchanges: { chat_completions: [], responses: null } }),
      ),
    ];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    const trained = json.trajectories.map(({ sequences }: { sequences: { tokens: number[]; mask: number[] }[] }) =>
      sequences.map(({ tokens, mask }) => tokens.filter((_, i) => mask[i] === 1)),
    );
    const both = [toyIds("a1 <e>"), toyIds("a2 a3 <e>")];
    expect(trained).toEqual([both, both, [toyIds("a1 <e>")]]);
  });

  it("limits their size, packed or not, and says so", async () => {
    const { id } = await newModel();
    const big = JSON.stringify(jobBody(id, [group(trajectory("a1", 0, { metadata: { text: "x".repeat(2 ** 20) } }))]));
    const plain = await server.call("POST", "/v1/preview/training-jobs", undefined, { raw: big });
    expect([plain.status, plain.json.error.code]).toEqual([413, 413]);
    const packed = await server.call("POST", "/v1/preview/training-jobs", undefined, {
      raw: gzipSync(big),
      headers: { "content-encoding": "gzip" },
    });
    expect(packed.status).toBe(413);
    expect(readdirSync(join(server.bench.folder, "training", "jobs"))).toEqual([]);
  });

  it("limits the values of one trajectory or example, however many a group has together", async () => {
    const large = await startTrainingServer({ maxBytes: 2 ** 25 });
    try {
      const { id } = (await large.call("POST", "/v1/preview/models", modelBody())).json;
      const noted = (values: number) => trajectory("a1", 0, { metadata: { values: new Array(values).fill(0) } });
      const post = (groups: unknown[]) =>
        large.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
      const fits = await post([group(noted(1_500_000), noted(1_500_000))]);
      expect([fits.status, fits.json.trajectories?.length]).toEqual([200, 2]);
      const tooMany = await post([group(trajectory("a1", 1)), group(trajectory("a1", 1), noted(2_000_000))]);
      const place = "trajectory_groups[1].trajectories[1]";
      expect(tooMany.json.error).toMatchObject({
        ...{ code: 413, type: "RequestTooLargeError", param: "body.trajectory_groups.1.trajectories.1" },
        message: `${place} has more than 2000000 values.`,
      });
      expect([tooMany.status, tooMany.json.detail]).toEqual([413, tooMany.json.error.message]);
      const example = { messages: [{ role: "assistant", content: "a1" }], tools: new Array(1_000_000).fill({}) };
      const body = { model_id: id, training_data: [example] };
      expect((await large.call("POST", "/v1/preview/sft-training-jobs", body)).status).toBe(413);
      expect(readdirSync(join(large.bench.folder, "training", "jobs"))).toEqual([]);
    } finally {
      await large.close();
    }
  });

  it.each([
    ["no JSON", "nonsense", undefined],
    ["cut JSON", '{"model_id":', undefined],
    ["no gzip", "{}", { "content-encoding": "gzip" }],
  ])("refuses %s with 422", async (_what, raw, headers) => {
    const answer = await server.call("POST", "/v1/preview/training-jobs", undefined, {
      raw,
      ...(headers ? { headers } : {}),
    });
    expect(answer.status).toBe(422);
    expect(Array.isArray(answer.json.detail)).toBe(true);
  });
});

describe("validation: 422 with the path of every problem", () => {
  const at = (...path: (string | number)[]) => ["body", "trajectory_groups", 0, "trajectories", 0, ...path];
  const withItem = (item: unknown) => [group(trajectory("a1", 1, { messages_and_choices: [item] }))];
  const withField = (fields: object) => [group(trajectory("a1", 1, fields as Record<string, unknown>))];
  it.each([
    ["missing model_id", { model_id: undefined }, ["body", "model_id"], "missing"],
    ["null model_id", { model_id: null }, ["body", "model_id"], "missing"],
    ["model_id no UUID", { model_id: "x" }, ["body", "model_id"], "uuid_parsing"],
    ["missing groups", { trajectory_groups: undefined }, ["body", "trajectory_groups"], "missing"],
    ["groups no list", { trajectory_groups: {} }, ["body", "trajectory_groups"], "list_type"],
    ["group no object", { trajectory_groups: [1] }, ["body", "trajectory_groups", 0], "dict_type"],
    ["reward text", { trajectory_groups: withField({ reward: "high" }) }, at("reward"), "float_type"],
    ["reward too large", { trajectory_groups: withField({ reward: "1e999" }) }, at("reward"), "float_type"],
    ["reward too far", { trajectory_groups: withField({ reward: 1.7e308 }) }, at("reward"), "less_than_equal"],
    ["reward too low", { trajectory_groups: withField({ reward: -2e100 }) }, at("reward"), "greater_than_equal"],
    [
      "metric too far",
      { trajectory_groups: withField({ metrics: { a: 1e300 } }) },
      at("metrics", "a"),
      "less_than_equal",
    ],
    [
      "element neither",
      { trajectory_groups: withItem({ content: "x" }) },
      at("messages_and_choices", 0),
      "value_error",
    ],
    [
      "element both",
      { trajectory_groups: withItem({ role: "user", message: {} }) },
      at("messages_and_choices", 0),
      "value_error",
    ],
    [
      "logprob text",
      { trajectory_groups: withItem(choice("a1", { logprobs: { content: [{ token: "a", logprob: "x" }] } })) },
      at("messages_and_choices", 0, "logprobs", "content", 0, "logprob"),
      "float_type",
    ],
    ...[{ logprob: -1 }, { token: null, logprob: -1 }, { bytes: [97], logprob: -1 }].map(
      (entry) =>
        [
          `logprob entry without a token: ${JSON.stringify(entry)}`,
          {
            trajectory_groups: withItem(choice("a1", { logprobs: { content: [{ token: "a1", logprob: -1 }, entry] } })),
          },
          at("messages_and_choices", 0, "logprobs", "content", 1, "token"),
          "missing",
        ] as const,
    ),
    ...["messages_and_choices", "tools", "additional_histories"].map((field) => {
      const legacy = { messages_and_choices: [], tools: null, [field]: [{ messages_and_choices: [], role: "user" }] };
      const exchanges = { chat_completions: [{ request: {}, response: {} }] };
      const what = `exchanges beside ${field}`;
      return [
        what,
        { trajectory_groups: withField({ ...legacy, exchanges }) },
        at("exchanges"),
        "value_error",
      ] as const;
    }),
    [
      "history without elements",
      { trajectory_groups: withField({ additional_histories: [{}] }) },
      at("additional_histories", 0, "messages_and_choices"),
      "missing",
    ],
    ["metric text", { trajectory_groups: withField({ metrics: { a: "b" } }) }, at("metrics", "a"), "float_type"],
    [
      "version fraction",
      { trajectory_groups: withField({ initial_policy_version: 1.5 }) },
      at("initial_policy_version"),
      "int_type",
    ],
  ] as const)("%s", async (_what, change, loc, type) => {
    const body = { ...jobBody(randomUUID()), ...change };
    const { status, json } = await server.call("POST", "/v1/preview/training-jobs", body);
    expect(status).toBe(422);
    expect(json.detail[0]).toMatchObject({ loc, type, msg: expect.any(String) });
    expect(json.error).toMatchObject({ code: 422, type: "UnprocessableEntityError", param: loc.join(".") });
  });

  it.each([
    [{ alt_k2_tau: 0.1, kimi_k2_tau: 0.2 }, "kimi_k2_tau"],
    [{ kl_ref_adapter_path: "/etc/passwd" }, "kl_ref_adapter_path"],
    [{ loss_fn: "ppo", ppo: false }, "loss_fn"],
    [{ loss_fn: "dpo" }, "loss_fn"],
    [{ importance_sampling_level: "word" }, "importance_sampling_level"],
    [{ advantage_balance: 2 }, "advantage_balance"],
    [{ learning_rate: -1 }, "learning_rate"],
    [{ learning_rate: "fast" }, "learning_rate"],
    [{ scale_rewards: true, normalize_advantages: false }, "normalize_advantages"],
    [{ kl_penalty_reference_step: 1, kl_penalty_step_lag: 1 }, "kl_penalty_step_lag"],
    [{ packed_sequence_length: 100_000, logprob_calculation_chunk_size: 100 }, "packed_sequence_length"],
    [{ packed_sequence_length: 1500 }, "packed_sequence_length"],
    [{ grad_accumulation_sequences: 0 }, "grad_accumulation_sequences"],
    [{ ppo: "yes" }, "ppo"],
    [{ max_grad_norm: 0 }, "max_grad_norm"],
    [{ max_grad_norm: -1 }, "max_grad_norm"],
  ])("experimental_config %j", async (config, field) => {
    const { id } = await newModel();
    const { status, json } = await server.call(
      "POST",
      "/v1/preview/training-jobs",
      jobBody(id, [], { experimental_config: config }),
    );
    expect(status).toBe(422);
    expect(json.detail[0].loc).toEqual(["body", "experimental_config", field]);
  });

  it("lists several problems at once", async () => {
    const groups = [group(trajectory("a1", 1, { reward: [] })), group(trajectory("a1", 1, { reward: {} })), 5];
    const { json } = await server.call("POST", "/v1/preview/training-jobs", { trajectory_groups: groups });
    expect(json.detail).toHaveLength(4);
    expect(json.error.message).toMatch(/and 3 more/);
  });

  it.each([
    [{ project: "p", name: "n" }, "base_model"],
    [{ project: "p", base_model: "tiny" }, "name"],
    [{ project: "p", name: "a/b", base_model: "tiny" }, "name"],
    [{ project: "..\\x", name: "n", base_model: "tiny" }, "project"],
    [{ project: "p", name: "n", base_model: "tiny", from: {} }, "from"],
  ])("model %j", async (body, field) => {
    const { status, json } = await server.call("POST", "/v1/preview/models", body);
    expect(status).toBe(422);
    expect(json.detail[0].loc[1]).toBe(field);
  });

  it("names the base models when one is unknown, and refuses a second model of a name", async () => {
    const unknown = await server.call("POST", "/v1/preview/models", { project: "p", name: "n", base_model: "gpt" });
    expect([unknown.status, unknown.json.detail[0].msg]).toEqual([422, expect.stringContaining("tiny")]);
    const body = { ...modelBody(), return_existing: false };
    expect((await server.call("POST", "/v1/preview/models", body)).status).toBe(200);
    expect((await server.call("POST", "/v1/preview/models", body)).status).toBe(409);
  });
});

describe("access", () => {
  it("needs a token with the scope training", async () => {
    for (const [as, status] of [
      [null, 401],
      ["guest", 403],
      ["ann", 200],
    ] as const) {
      const answer = await server.call("GET", "/v1/preview/models", undefined, { as });
      expect(answer.status).toBe(status);
      if (status !== 200) expect(answer.json).toMatchObject({ error: { code: status }, detail: expect.any(String) });
    }
  });

  it("keeps owners apart: another's id is a 404", async () => {
    const { id, name } = await newModel();
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json;
    const bob = { as: "bob" } as const;
    for (const [method, path, body] of [
      ["GET", `/v1/preview/models/${id}`],
      ["DELETE", `/v1/preview/models/${id}`],
      ["GET", `/v1/preview/models/${id}/checkpoints`],
      ["DELETE", `/v1/preview/models/${id}/checkpoints`, { steps: [0] }],
      ["POST", `/v1/preview/models/${id}/rollback`, { step: 0 }],
      ["POST", `/v1/preview/models/${id}/log`, { split: "val", trajectory_groups: [] }],
      ["POST", "/v1/preview/training-jobs", jobBody(id, [])],
      ["POST", "/v1/preview/models", { project: "p", name: "f", from: { model_id: id } }],
      ["GET", `/v1/preview/training-jobs/${job.id}`],
      ["GET", `/v1/preview/training-jobs/${job.id}/events`],
      ["POST", `/v1/preview/training-jobs/${job.id}/cancel`],
    ] as const) {
      const answer = await server.call(method, path, body, bob);
      expect([method, path, answer.status]).toEqual([method, path, 404]);
    }
    const names = (await server.call("GET", `/v1/preview/models?name=${name}`, undefined, bob)).json.data;
    expect(names).toEqual([]);
    expect((await server.call("GET", `/v1/preview/models?name=${name}`)).json.data).toHaveLength(1);
  });

  it("answers probes and base models without a token", async () => {
    const open = { as: null } as const;
    expect((await server.call("GET", "/v1/preview/base-models", undefined, open)).json).toEqual(["tiny"]);
    expect((await server.call("GET", "/v1/health", undefined, open)).status).toBe(200);
    const check = await server.call("GET", "/v1/system-check", undefined, open);
    expect(check.status).toBe(200);
    expect(check.json).toMatchObject({ api: true, database: { success: true, errors: [] } });
  });
});
