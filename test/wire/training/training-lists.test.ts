// What lists of models, steps and jobs show.

import { describe, expect, it } from "vitest";
import { rlConfigFrom, sftConfigFrom } from "../../../src/api/training/job-options.ts";
import { shared } from "../../support/shared-server.ts";
import { finishedJob, goodGroup, group, jobBody, newModel, trajectory } from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer());
const get = async (path: string, as: "ann" | "root" = "ann") => {
  const { status, json } = await server.call("GET", `/v1/preview/${path}`, undefined, { as });
  expect(status).toBe(200);
  return json;
};
const train = async (id: string, groups: unknown[] = [goodGroup()], more: object = {}) => {
  const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, groups, more));
  await finishedJob(server, json.id);
  return json.id as string;
};

describe("a list", () => {
  it("of models shows steps, size, jobs and rewards of each", async () => {
    const { id, name } = await newModel(server);
    const untrained = await get(`models/${id}`);
    expect(untrained).toMatchObject({
      latest_step: 0,
      open_jobs: 0,
      recent_rewards: [],
      forked_from: null,
      last_job: null,
    });
    expect(untrained).not.toHaveProperty("workspace");
    await train(id, [group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0))]);
    const last = await train(id, [group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0.5))]);
    const [row] = (await get(`models?name=${name}`)).data;
    expect(row).toMatchObject({ id, latest_step: 2, lora_rank: 2, open_jobs: 0, recent_rewards: [0.5, 0.75] });
    expect(row.last_job).toMatchObject({ id: last, status: "COMPLETED", progress: 1, error_message: null });
    const steps = (await get(`models/${id}/checkpoints`)).data;
    expect(row.bytes).toBe(steps.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0));
    expect(row.bytes).toBeGreaterThan(0);
    expect(await get(`models/${id}`)).toEqual(row);
    expect((await get(`models/${id}`, "root")).workspace).toBe("1");
  });

  it("of models keeps the last 30 rewards of each, whatever the others have", async () => {
    const [a, b] = [await newModel(server), await newModel(server)];
    const { store } = server.bench;
    for (let step = 1; step <= 32; step++) {
      await store.run(
        `INSERT INTO steps (id, model_id, step, bytes, metrics, reward, created_at) VALUES (?1, ?2, ?3, 1, '{}', ?4, '')`,
        ...[`${a.id}-${step}`, a.id, step, step / 100],
      );
    }
    const rows = (await get("models?limit=100")).data as { id: string; recent_rewards: number[] }[];
    const rewards = (id: string) => rows.find((row) => row.id === id)!.recent_rewards;
    expect(rewards(a.id)).toEqual(Array.from({ length: 30 }, (_, i) => (i + 3) / 100));
    expect(rewards(b.id)).toEqual([]);
  });

  it("of steps shows where each comes from, and its job", async () => {
    const { id } = await newModel(server);
    const job = await train(id);
    await server.call("POST", `/v1/preview/models/${id}/rollback`, { step: 0 });
    const steps = (await get(`models/${id}/checkpoints`)).data;
    expect(steps).toMatchObject([
      { step: 0, origin: "registration", job_id: null, loaded: true },
      { step: 1, origin: "training", job_id: job },
      { step: 2, origin: "rollback", job_id: null },
    ]);
    expect(await get(`models/${id}/checkpoints/1`)).toEqual(steps[1]);
    for (const step of [0, 1]) {
      const body = { project: "p", name: `fork-${step}-${id}`, from: { model_id: id, step } };
      const fork = (await server.call("POST", "/v1/preview/models", body)).json;
      expect(fork.forked_from).toEqual({ model_id: id, step });
      expect((await get(`models/${fork.id}/checkpoints`)).data).toMatchObject([{ step, origin: "fork" }]);
    }
    const other = await newModel(server);
    expect((await get(`models/${other.id}/checkpoints`)).data).toMatchObject([{ origin: "registration" }]);
  });

  it("of jobs shows settings, totals and gradient steps", async () => {
    const { id } = await newModel(server);
    const alike = group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 1));
    const job = await train(id, [goodGroup(), alike], {
      experimental_config: { learning_rate: 0.5, kimi_k2_tau: 0.1 },
    });
    const [row] = (await get(`training-jobs?model_id=${id}`)).data;
    expect(row).toMatchObject({
      ...{ id: job, attempts: 1, gradient_steps: { done: 2, total: 2 } },
      config: { learning_rate: 0.5, alt_k2_tau: 0.1, loss_fn: "cispo", seed: 3407, grad_accumulation_sequences: 1 },
      totals: {
        groups: 2,
        trainable_groups: 1,
        trajectories: 4,
        trained: 2,
        by_status: { trained: 2, zero_advantage: 2 },
      },
    });
    const { report, ...one } = await get(`training-jobs/${job}`);
    expect(one).toEqual(row);
    const sum = (key: string) =>
      report.trajectories.reduce((total: number, entry: Record<string, number>) => total + entry[key]!, 0);
    expect(row.totals).toMatchObject({ tokens: sum("num_tokens"), trainable_tokens: sum("num_trainable_tokens") });
    // sent back, it means the same
    const again = await train(id, [goodGroup()], { experimental_config: row.config });
    expect((await get(`training-jobs/${again}`)).config).toEqual(row.config);
    expect(rlConfigFrom(row.config, [])).toEqual(rlConfigFrom({ learning_rate: 0.5, kimi_k2_tau: 0.1 }, []));
  });

  it("of jobs shows those of examples too, and jobs of an earlier version without totals", async () => {
    const { id } = await newModel(server);
    const examples = [
      {
        messages: [
          { role: "user", content: "q1" },
          { role: "assistant", content: "a1" },
        ],
      },
    ];
    const body = { model_id: id, training_data: examples, config: { learning_rate: [0.1, 0.2] } };
    const { json } = await server.call("POST", "/v1/preview/sft-training-jobs", body);
    expect(json).toMatchObject({ totals: null, gradient_steps: null, attempts: 0 });
    await finishedJob(server, json.id);
    const row = await get(`training-jobs/${json.id}`);
    expect(row.totals).toMatchObject({ groups: 0, trajectories: 1, trained: 1, by_status: { trained: 1 } });
    expect(row.config).toEqual({ learning_rate: [0.1, 0.2], batch_size: 2, assistant_turns: "all" });
    expect(sftConfigFrom(row.config)).toEqual(sftConfigFrom(body.config));
    await server.bench.store.run("UPDATE jobs SET totals = NULL, gradient_steps = NULL WHERE id = ?1", json.id);
    expect(await get(`training-jobs/${json.id}`)).toMatchObject({ totals: null, gradient_steps: null });
  });
});

describe("curves", () => {
  it("are columns over all gradient steps, and go on where a reply ended", async () => {
    const { id } = await newModel(server);
    await train(id, [goodGroup(), goodGroup()]);
    const curves = await get(`models/${id}/curves`);
    expect(curves).toMatchObject({ object: "curves", rows: 4, has_more: false });
    expect(curves.columns.gradient_step).toEqual([1, 2, 3, 4]);
    expect(curves.columns.step).toEqual([1, 1, 1, 1]);
    expect(curves.columns.loss).toHaveLength(4);
    expect(curves.all_keys).toEqual(expect.arrayContaining(["loss", "entropy", "reward"]));
    expect(curves.all_keys).not.toContain("gradient_step");
    await train(id);
    const rest = await get(`models/${id}/curves?keys=loss,nothing&after=${curves.next}`);
    expect(rest.columns).toEqual({
      ...{ gradient_step: [5, 6], step: [2, 2], nothing: [null, null] },
      loss: [expect.any(Number), expect.any(Number)],
    });
    expect(await get(`models/${id}/curves?after=${rest.next}`)).toMatchObject({ rows: 0, next: rest.next });
  });

  it("of one job count its own gradient steps, and go on where a reply ended", async () => {
    const { id } = await newModel(server);
    await train(id, [goodGroup(), goodGroup()]);
    const job = await train(id, [goodGroup(), goodGroup()]);
    const all = await get(`models/${id}/curves`);
    const curves = await get(`training-jobs/${job}/curves`);
    expect(curves).toMatchObject({ object: "curves", rows: 4, has_more: false });
    expect(curves.columns.gradient_step).toEqual([1, 2, 3, 4]);
    expect(curves.columns.loss).toEqual(all.columns.loss.slice(4));
    expect(curves.columns).not.toHaveProperty("step");
    const loss = await get(`training-jobs/${job}/curves?keys=loss`);
    expect(Object.keys(loss.columns).sort()).toEqual(["gradient_step", "loss"]);
    const events = await get(`training-jobs/${job}/events`);
    expect(events.data.filter(({ type }: { type: string }) => type === "gradient_step")).toHaveLength(4);
    expect(await get(`training-jobs/${job}/curves?after=${curves.next}`)).toMatchObject({ rows: 0, next: curves.next });
  });

  it("by step have the metrics of steps, logged ones too", async () => {
    const { id } = await newModel(server);
    await train(id);
    const log = { split: "val", trajectory_groups: [goodGroup()] };
    await server.call("POST", `/v1/preview/models/${id}/log`, log);
    const curves = await get(`models/${id}/curves?x=step&keys=train/reward,val/reward`);
    expect(curves.columns).toEqual({ step: [0, 1], "train/reward": [null, 0.5], "val/reward": [null, 0.5] });
    expect(await get(`models/${id}/curves?x=step&after=1`)).toMatchObject({ rows: 0, next: 1 });
    const refused = await server.call("GET", `/v1/preview/models/${id}/curves?x=time`);
    expect(refused.status).toBe(422);
  });
});
