// Training jobs over HTTP, as clients send and follow them.

import { describe, expect, it, vi } from "vitest";
import { FlywheelClient } from "../../../src/client/client.ts";
import { shared } from "../../support/shared-server.ts";
import { toyIds } from "../../support/toy-encoder.ts";
import { fakeTrainer, heldTrainer, jobFolders } from "../../support/training-service.ts";
import {
  artPoll,
  choice,
  finishedJob,
  goodGroup,
  group,
  jobBody,
  modelBody,
  newModel,
  trajectory,
} from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000 }));

describe("jobs", () => {
  it("lists, reports every trajectory, and keeps the order of submission", async () => {
    const { id } = await newModel(server);
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
    const done = await finishedJob(server, job.id);
    expect(done.status).toBe("COMPLETED");
    expect(done.report.trajectories.map(({ status }: { status: string }) => status)).toEqual([
      ...["trained", "trained", "zero_advantage", "no_logprobs", "stale", "too_long", "token_mismatch"],
    ]);
    expect(done.report.trajectories[3]).toMatchObject({
      reason: "no_logprobs",
      message: expect.stringContaining("logprobs"),
    });
    await finishedJob(server, second.id);
    const list = (await server.call("GET", `/v1/preview/training-jobs?model_id=${id}&limit=1`)).json;
    expect(list.data.map((item: { id: string }) => item.id)).toEqual([second.id]);
    expect(list.has_more).toBe(true);
    const rest = (await server.call("GET", `/v1/preview/training-jobs?model_id=${id}&after=${list.last_id}`)).json;
    expect(rest.data.map((item: { id: string }) => item.id)).toEqual([job.id]);
    expect((await server.call("GET", "/v1/preview/training-jobs?status=DONE")).status).toBe(422);
  });

  it("shows tokens, mask and advantage without training anything (dry_run)", async () => {
    const { id } = await newModel(server);
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
    // those of jobs that are over go after their ends are recorded
    await expect.poll(() => jobFolders(server.bench)).toEqual([]);
  });

  it("says before training what does not fit the memory for it", async () => {
    const small = await startTrainingServer({ trainer: fakeTrainer(2, { FAKE_TRAINER_LONGEST: "11" }) });
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

  it("says that the trainer cannot train the model, in a job and in a preview, and asks again", async () => {
    const broken = await startTrainingServer({ trainer: fakeTrainer(2, { FAKE_TRAINER_LONGEST: "none" }) });
    try {
      const model = { project: "demo", name: "agent", base_model: "tiny" };
      const { id } = (await broken.call("POST", "/v1/preview/models", model)).json;
      const why = "The trainer cannot train this model: the fake trainer has no memory.";
      for (let i = 0; i < 2; i++) {
        const preview = await broken.call(
          "POST",
          "/v1/preview/training-jobs",
          jobBody(id, [goodGroup()], { dry_run: true }),
        );
        expect(preview).toMatchObject({ status: 503, json: { error: { message: expect.stringContaining(why) } } });
      }
      const job = (await broken.call("POST", "/v1/preview/training-jobs", jobBody(id, [goodGroup()]))).json;
      const ended = async () => (await broken.call("GET", `/v1/preview/training-jobs/${job.id}`)).json;
      await expect.poll(async () => (await ended()).status).toBe("FAILED");
      expect((await ended()).error_message).toContain(why);
    } finally {
      await broken.close();
    }
  });

  it("shows what the chat template refuses, in a job and in a preview", async () => {
    const { id } = await newModel(server);
    const alien = [{ role: "alien", content: "q1" }, choice("a1 <e>")];
    const groups = [goodGroup(), group(trajectory("", 1, { messages_and_choices: alien }), trajectory("a1 <e>", 0))];
    const dry = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, { dry_run: true }));
    const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups))).json;
    const done = await finishedJob(server, job.id);
    expect(dry.status).toBe(200);
    expect(done.status).toBe("COMPLETED");
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
    const trained = await finishedJob(
      server,
      (await server.call("POST", "/v1/preview/sft-training-jobs", sft)).json.id,
    );
    expect(trained.report.totals).toMatchObject({ num_trajectories: 2, num_dropped_trajectories: 1 });
  });

  it("has finite numbers for the largest rewards and metrics, in events and in what is logged", async () => {
    const { id } = await newModel(server);
    const large = { metrics: { size: 1e100 } };
    const groups = [group(...[1e100, -1e100, 1e100].map((reward) => trajectory("a1 <e>", reward, large)))];
    for (const scale_rewards of [true, false]) {
      const body = jobBody(id, groups, { experimental_config: { scale_rewards } });
      // fails on a value that is no number
      await artPoll(server, (await server.call("POST", "/v1/preview/training-jobs", body)).json.id);
    }
    const log = { split: "val", trajectory_groups: groups };
    const { metrics } = (await server.call("POST", `/v1/preview/models/${id}/log`, log)).json;
    for (const value of Object.values(metrics)) expect(typeof value).toBe("number");
  });

  it("says that the disk is full whatever the request wanted to write", async () => {
    const { id } = await newModel(server);
    const job = await finishedJob(
      server,
      (await server.call("POST", "/v1/preview/training-jobs", jobBody(id))).json.id,
    );
    const full = () => {
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    };
    const { models, jobs } = server.bench.service;
    const spies = [vi.spyOn(models, "log"), vi.spyOn(jobs, "cancel")].map((spy) => spy.mockImplementation(full));
    try {
      const log = { split: "val", trajectory_groups: [goodGroup()] };
      expect((await server.call("POST", `/v1/preview/models/${id}/log`, log)).status).toBe(507);
      const { status, json } = await server.call("POST", `/v1/preview/training-jobs/${job.id}/cancel`);
      expect(status).toBe(507);
      expect(json.detail).toBe("The server's disk is full.");
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
  });

  it("refuses jobs for a model whose steps this server could not serve", async () => {
    const small = await startTrainingServer({ maxLoraRank: 1 });
    try {
      const { id } = await newModel(small);
      for (const more of [{}, { dry_run: true }]) {
        const { status, json } = await small.call("POST", "/v1/preview/training-jobs", { ...jobBody(id), ...more });
        expect(status).toBe(422);
        expect(json.detail[0].loc).toEqual(["body", "model_id"]);
        expect(json.detail[0].msg).toContain("--max-lora-rank 1");
      }
      expect((await small.call("GET", "/v1/preview/training-jobs")).json.data).toEqual([]);
    } finally {
      await small.close();
    }
  });

  it("refuses a learning rate that is not a number before anything is trained", async () => {
    const { id } = await newModel(server);
    const config = { grad_accumulation_sequences: "all", num_trajectories_learning_rate_multiplier_power: 2000 };
    const body = jobBody(id, undefined, { experimental_config: config });
    const dry = await server.call("POST", "/v1/preview/training-jobs", { ...body, dry_run: true });
    expect(dry.status).toBe(422);
    expect(dry.json.detail[0].loc).toEqual(["body", "experimental_config"]);
    const job = await finishedJob(server, (await server.call("POST", "/v1/preview/training-jobs", body)).json.id);
    expect(job).toMatchObject({ status: "FAILED", step: null, error_message: dry.json.detail[0].msg });
    expect((await artPoll(server, job.id)).map(({ type }) => type)).toEqual(["training_failed"]);
  });

  it("refuses a KL reference that does not exist, in a preview and in a job", async () => {
    const { id } = await newModel(server);
    const config = { kl_penalty_coef: 0.1, kl_penalty_reference_step: 7 };
    for (const dry_run of [true, false]) {
      const body = jobBody(id, [goodGroup()], { experimental_config: config, dry_run });
      const { status, json } = await server.call("POST", "/v1/preview/training-jobs", body);
      expect(status).toBe(422);
      expect(json.error.message).toEqual(expect.stringContaining("step 7, does not exist"));
    }
    expect((await server.call("GET", `/v1/preview/training-jobs?model_id=${id}`)).json.data).toEqual([]);
  });

  it("streams events on request, and resumes after Last-Event-ID", async () => {
    const { id } = await newModel(server);
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

  describe("in the middle of their training", () => {
    const server = shared(() => startTrainingServer({ trainer: heldTrainer().trainer }));

    it("are deleted with their model, and followers of a job are told that it ended", async () => {
      const { id } = await newModel(server);
      const over = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []))).json;
      await finishedJob(server, over.id);
      const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id))).json;
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

    it("cancels, any number of times", async () => {
      const { id } = await newModel(server);
      const job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(id))).json;
      const cancel = () => server.call("POST", `/v1/preview/training-jobs/${job.id}/cancel`);
      expect((await cancel()).status).toBe(200);
      expect(await finishedJob(server, job.id)).toMatchObject({ status: "CANCELLED", step: null });
      expect((await cancel()).json.status).toBe("CANCELLED");
      expect((await artPoll(server, job.id)).at(-1)).toMatchObject({
        type: "training_failed",
        data: { error_message: expect.stringContaining("cancelled") },
      });
    });
  });

  it("is created once per Idempotency-Key", async () => {
    const { id } = await newModel(server);
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
    const { id } = await newModel(server);
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
    expect(preview.examples[3].num_tokens).toBe(preview.examples[3].tokens.length);
    expect(preview.examples[3].tokens.slice(0, 4)).toEqual(toyIds("<s> user NL q1"));
    expect((await server.call("GET", `/v1/preview/training-jobs?model_id=${id}`)).json.data).toEqual([]);
    const job = (await server.call("POST", "/v1/preview/sft-training-jobs", body)).json;
    const events = await artPoll(server, job.id);
    expect(events.map(({ type }) => type)).toEqual(["gradient_step", "gradient_step", "training_ended"]);
    expect(events.slice(0, 2).map(({ data }) => data.learning_rate)).toEqual([1e-3, 5e-4]);
    // of its batch; the report has those of the job
    expect(events.slice(0, 2).map(({ data }) => data.num_trajectories)).toEqual([2, 1]);
    expect(events[0]!.data.num_dropped_trajectories).toBe(1);
    const done = await finishedJob(server, job.id);
    expect(done.report.totals).toEqual({ num_trajectories: 4, num_dropped_trajectories: 1 });
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
  const full = await startTrainingServer({ maxBytesPerOwner: 40_000 });
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
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(refused.headers.get("retry-after")).toBe(null);
    await expect(client.submit(id, [], { idempotencyKey: "k" })).rejects.toThrow(
      /429: This needs \d+ bytes, and the workspace uses \d+ of 40000/,
    );
    expect(requests).toBe(1);
  } finally {
    await full.close();
  }
});
