// Training runs over HTTP with the real trainer on a tiny model: the loop of OpenPipe ART's native client, what is
// refused, and what survives.

import { existsSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { LeaseTable } from "../../../src/store/tables/leases.ts";
import { compiledEntry } from "../../../src/system/package.ts";
import { ProcessTrainer } from "../../../src/training/process/process-trainer.ts";
import { ForkedProcess } from "../../../src/training/process/trainer-process.ts";
import { shared } from "../../support/shared-server.ts";
import { ADAM, batchOf, CISPO, NativeRunClient, rollout, SPEC } from "./native-run-client.ts";
import { startTrainingServer } from "./training-server.ts";

const trainer = () =>
  new ProcessTrainer({
    start: () => new ForkedProcess(compiledEntry(import.meta.url, "../../../src/training/onnx/trainer-entry.ts")),
    ...{ idleMs: 60_000, cancelGraceMs: 1_000 },
  });
const server = shared(() => startTrainingServer({ trainer: trainer() }));
const find = (name: string) => server.bench.service.policies.find(name, "1");

const good = rollout("good", [10, 11, 12], [20, 21, 22], 1);
const bad = rollout("bad", [10, 11, 12], [30, 31], -1);
const pass = (...matrices: ReturnType<typeof rollout>[]) => ({
  ...{ batch: batchOf(...matrices), loss: CISPO, collect_packing_shapes: false },
  ...{ retain_packed_input: false, return_token_logprobs: false },
});
const publication = (alias: string) => ({
  ...{ checkpoint_name: "step", ttl_seconds: null },
  publication: { target: "saved_generation", model_alias: alias },
});

/** The log-probabilities in a result, by matrix. */
function logprobs(result: { token_logprobs: { matrix_id: string; shape: number[]; data: string }[] }) {
  return new Map(
    result.token_logprobs.map(({ matrix_id, shape, data }) => {
      const bytes = Buffer.from(data, "base64");
      expect(bytes.length).toBe(4 * shape[0]! * shape[1]!);
      return [matrix_id, Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i))] as const;
    }),
  );
}

describe("the loop of ART's native client", () => {
  it("trains a registered model: forward_backward, optim_step, publish", async () => {
    const names = { entity: "team", project: "demo", name: "agent" };
    const registered = await server.call("POST", "/v1/preview/models", { ...names, base_model: "tiny" });
    const run = await NativeRunClient.resolve(server);
    const first = await run.perform("forward_backward", pass(good, bad));
    expect(first).toMatchObject({
      packing: { packed_sequences: 1, logical_tokens: 11, physical_tokens: 11, padding_tokens: 0 },
      training: {
        accepted_trainable_tokens: 5,
        policy_token_counts: [{ policy_version: 0, accepted_trainable_tokens: 5 }],
      },
      loss: { contract_id: "cispo_v1", reduction: "mean_active_token" },
      produced_gradient: true,
      token_logprobs: [],
      group_shapes: [],
    });
    expect(first.metrics["loss/train"]).toBe(first.loss.value);
    const step = await run.perform("optim_step", { optimizer: ADAM });
    expect(step).toMatchObject({ learner_version: 1, contributing_operation_ids: [first.operation_id] });
    expect(step.checkpoint).toEqual({ checkpoint_id: `${run.runId}@1`, learner_version: 1 });
    expect(step.metrics["loss/grad_norm"]).toBeGreaterThan(0);
    const published = await run.perform("save_weights_for_sampler", publication("agent"));
    expect(published).toMatchObject({
      ...{ target: "saved_generation", model_alias: "agent", generation_id: "team/demo/agent:step1" },
      ...{ learner_version: 1, checkpoint: step.checkpoint },
    });
    // the registered name answers with the new step, under the version's number
    expect(await find("wandb-artifact:///team/demo/agent")).toMatchObject({
      model: { id: registered.json.id },
      step: 1,
    });
    expect(await find("wandb-artifact:///team/demo/agent:step1")).not.toBeNull();
    const closed = await server.call("POST", run.path(":close"), { request_id: "close-1" });
    expect(closed.json).toMatchObject({ status: "closed", next_sequence_id: 3, committed_learner_version: 1 });
  });

  it("makes good tokens likelier with every step, and keeps gradients between passes", async () => {
    const run = await NativeRunClient.resolve(server);
    const read = { ...pass(good), return_token_logprobs: true };
    const before = await run.perform("forward", read);
    expect(before).not.toHaveProperty("training");
    for (let i = 0; i < 3; i++) {
      // two passes, admitted before the first one ran
      const ids = [await run.submit("forward_backward", pass(good)), await run.submit("forward_backward", pass(bad))];
      const { contributing_operation_ids } = await run.perform("optim_step", { optimizer: ADAM });
      expect(contributing_operation_ids).toEqual(ids);
    }
    const after = await run.perform("forward", read);
    const [a, b] = [before, after].map((result) => logprobs(result).get("good")!);
    for (const p of [2, 3, 4]) expect(b![p]).toBeGreaterThan(a![p]!);
    expect(
      await run.perform("save_state", { checkpoint_name: "kept", ttl_seconds: null, overwrite: false }),
    ).toMatchObject({
      ...{ archive: null, checkpoint: { learner_version: 3 } },
    });
    // back to the start: the same numbers as before
    const back = await run.perform("load_state", {
      source: { kind: "service_checkpoint", checkpoint_id: `${run.runId}@0` },
      restore_optimizer: true,
    });
    expect(back).toMatchObject({ optimizer_restored: true, checkpoint: { learner_version: 4 } });
    expect(logprobs(await run.perform("forward", read))).toEqual(logprobs(before));
    // a new run may start from a checkpoint of another
    const source = { kind: "service_checkpoint", checkpoint_id: `${run.runId}@3` };
    const forked = await NativeRunClient.resolve(server, { initial_state: { source, restore_optimizer: false } });
    expect(forked.version).toBe(3);
    expect(logprobs(await forked.perform("forward", read))).toEqual(logprobs(after));
  });

  it("trains on examples with cross_entropy, and repeats token ids when asked", async () => {
    const run = await NativeRunClient.resolve(server);
    const rows = good.rows.filter(({ name }) => ["token_ids", "target_token_ids", "loss_weights"].includes(name));
    const fields = { ...pass({ ...good, rows }), loss: { name: "cross_entropy", normalize_advantages: false } };
    const result = await run.perform("forward_backward", { ...fields, collect_packing_shapes: true });
    expect(result.training).toEqual({ accepted_trainable_tokens: 3, policy_token_counts: null });
    expect(result.group_shapes).toEqual([
      { leaves: [{ matrix_id: "good", token_ids: [10, 11, 12, 20, 21, 22], shareable_length: 6 }] },
    ]);
    await run.perform("optim_step", { optimizer: { learning_rate: 1e-2, grad_clip_norm: 0 } });
    // a name that nobody has becomes a model
    const { generation_id } = await run.perform("save_weights_for_sampler", publication("fresh"));
    expect(generation_id).toBe("ann/training-runs/fresh:step1");
    expect(await find("fresh")).toMatchObject({ step: 1 });
  });

  it("publishes a new name and ends the operation together, or neither", async () => {
    const run = await NativeRunClient.resolve(server);
    await run.perform("forward_backward", pass(good));
    await run.perform("optim_step", { optimizer: ADAM });
    const finish = vi.spyOn(LeaseTable.prototype, "finish").mockRejectedValueOnce(new Error("the server died"));
    await expect(run.perform("save_weights_for_sampler", publication("torn"))).rejects.toThrow();
    expect(finish).toHaveBeenCalled();
    finish.mockRestore();
    expect(await find("torn")).toBeNull();
    const { generation_id } = await run.perform("save_weights_for_sampler", publication("torn"));
    expect(generation_id).toMatch(/\/torn:step1$/);
  });

  it("publishes under the next free number when another run used the version's", async () => {
    for (const number of [1, 2]) {
      const run = await NativeRunClient.resolve(server);
      await run.perform("forward_backward", pass(good));
      await run.perform("optim_step", { optimizer: ADAM });
      const { generation_id } = await run.perform("save_weights_for_sampler", publication("twice"));
      expect(generation_id).toMatch(new RegExp(`/twice:step${number}$`));
    }
  });
});

describe("a run", () => {
  it("is found again by its name, with its place in the sequence", async () => {
    const run = await NativeRunClient.resolve(server, { run_name: "durable" });
    await run.perform("forward_backward", pass(good));
    await server.call("POST", run.path(":close"), { request_id: "c" });
    expect((await run.send("optim_step", { optimizer: ADAM })).status).toBe(409);
    const again = await NativeRunClient.resolve(server, { run_name: "durable" });
    expect([again.runId, again.sequence, again.version]).toEqual([run.runId, 1, 0]);
    // the gradients are still there
    await again.perform("optim_step", { optimizer: ADAM });
    const other = { ...SPEC, lora_rank: 4 };
    const differs = await server.call("POST", "/v1/training/runs:resolve", {
      ...{ request_id: "x", run_name: "durable", spec: other, initial_state: null },
    });
    expect(differs).toMatchObject({ status: 409, json: { error: { param: "spec" } } });
  });

  it("is returned again for the same request, and gone with its model", async () => {
    const body = { request_id: "same", spec: SPEC, initial_state: null };
    const one = await server.call("POST", "/v1/training/runs:resolve", body);
    const two = await server.call("POST", "/v1/training/runs:resolve", body);
    expect(two.json).toEqual(one.json);
    expect(one.json.run_name).toBeNull();
    const path = `/v1/training/runs/${one.json.run_id}`;
    expect((await server.call("GET", path)).json).toEqual(one.json);
    expect((await server.call("GET", path, undefined, { as: "bob" })).status).toBe(404);
    expect((await server.call("DELETE", `/v1/preview/models/${one.json.run_id}`)).status).toBe(200);
    expect((await server.call("GET", path)).status).toBe(404);
  });

  it("takes each request once, and only in sequence", async () => {
    const run = await NativeRunClient.resolve(server);
    const first = await run.send("forward_backward", pass(good), "once");
    const repeated = await run.send("forward_backward", pass(good), "once");
    expect(repeated.json.operation_id).toBe(first.json.operation_id);
    const changed = await run.send("forward_backward", pass(bad), "once");
    expect(changed).toMatchObject({ status: 409, json: { error: { param: "request_id" } } });
    expect(changed.headers.get("x-should-retry")).toBe("false");
    for (const sequence_id of [0, 2]) {
      const answer = await run.send("save_state", { sequence_id }, `s${sequence_id}`);
      expect(answer.json.error.message).toBe(`The next sequence_id of this run is 1, not ${sequence_id}.`);
    }
    expect((await server.call("GET", run.path(""))).json).toMatchObject({ next_sequence_id: 1 });
    // operations are no training jobs
    const { json } = await server.call("GET", `/v1/preview/training-jobs?model_id=${run.runId}`);
    expect(json.data).toEqual([]);
    expect((await server.call("GET", `/v1/preview/training-jobs/${first.json.operation_id}`)).status).toBe(404);
    await run.ended(first.json.operation_id); // later tests count what the workspace uses
  });

  it("drops the gradients of a cancelled operation, and fails a step without any", async () => {
    const run = await NativeRunClient.resolve(server);
    const use = async () => (await server.bench.service.account("1")).use;
    const before = (await use()).gradients;
    const { operation_id } = await run.perform("forward_backward", pass(good));
    const gradients = join(
      server.bench.folder,
      "training/models",
      run.runId,
      "gradients",
      `${operation_id}.safetensors`,
    );
    expect(existsSync(gradients)).toBe(true);
    expect((await use()).gradients).toBe(before + statSync(gradients).size);
    const cancelled = await server.call("POST", run.path(`/operations/${operation_id}:cancel`));
    expect(cancelled.json).toMatchObject({ status: "succeeded", cancel_requested: true });
    expect(existsSync(gradients)).toBe(false);
    expect((await use()).gradients).toBe(before);
    const failed = await run.ended(await run.submit("optim_step", { optimizer: ADAM }));
    expect(failed).toMatchObject({ status: "failed", result_ref: null });
    expect(failed.error.code).toMatch(/send forward_backward before optim_step/);
    // the version was not made, so the client finds its place by resolving again
    expect((await server.call("GET", run.path(""))).json).toMatchObject({ projected_learner_version: 0 });
  });

  it("counts the gradients and results of its operations, and what they will leave", async () => {
    const use = async () => (await server.bench.service.account("1")).use;
    const run = await NativeRunClient.resolve(server);
    const before = await use();
    const open = await run.submit("forward_backward", pass(good));
    await run.ended(open);
    const waiting = await use();
    expect(waiting.gradients).toBeGreaterThan(before.gradients);
    expect(waiting.results).toBeGreaterThan(before.results);
    expect(waiting).toMatchObject({ openJobs: 0, reserved: 0 });
    await run.perform("optim_step", { optimizer: ADAM });
    expect(await use()).toMatchObject({ gradients: before.gradients, openJobs: 0, reserved: 0 });
    const { results } = await use();
    await server.call("POST", run.path(`/operations/${open}/result:release`), { request_id: "r" });
    expect((await use()).results).toBeLessThan(results);
  });

  it("refuses an operation whose gradients would not fit, and takes it when there is room again", async () => {
    const bench = await startTrainingServer({ trainer: trainer(), maxBytesPerOwner: 400_000 });
    try {
      const run = await NativeRunClient.resolve(bench);
      let taken = 0;
      let answer = await run.send("forward_backward", pass(good));
      for (; answer.status === 200; taken++) {
        await run.ended(answer.json.operation_id);
        run.sequence++;
        answer = await run.send("forward_backward", pass(good));
      }
      expect(answer).toMatchObject({ status: 429, json: { detail: expect.stringMatching(/uses \d+ of 400000/) } });
      expect(taken).toBeGreaterThan(0);
      expect(readdirSync(join(bench.bench.folder, "training/jobs"))).toEqual([]);
      const { gradients } = (await bench.bench.service.account("1")).use;
      for (const name of readdirSync(join(bench.bench.folder, "training/models", run.runId, "gradients"))) {
        await bench.call("POST", run.path(`/operations/${name.slice(0, 36)}:cancel`));
      }
      expect([gradients > 0, (await bench.bench.service.account("1")).use.gradients]).toEqual([true, 0]);
      expect((await run.send("forward_backward", pass(good))).status).toBe(200);
    } finally {
      await bench.close();
    }
  });

  it("keeps a result until it is released", async () => {
    const run = await NativeRunClient.resolve(server);
    const { operation_id } = await run.perform("forward_backward", pass(good));
    const path = run.path(`/operations/${operation_id}`);
    const released = await server.call("POST", `${path}/result:release`, { request_id: "r" });
    expect(released.json).toEqual({ operation_id, request_id: "r", released: true });
    expect((await server.call("GET", `${path}/result`)).status).toBe(404);
    expect((await server.call("GET", path)).json).toMatchObject({ status: "succeeded", result_ref: null });
    // its gradients are not the result
    await run.perform("optim_step", { optimizer: ADAM });
  });
});

it("keeps runs, their operations and their gradients when the server starts again", async () => {
  const folder = mkdtempSync(join(tmpdir(), "runs-"));
  const before = await startTrainingServer({ folder, trainer: trainer() });
  const run = await NativeRunClient.resolve(before, { run_name: "kept" });
  const { operation_id } = await run.perform("forward_backward", pass(good));
  // still waiting or running when the server stops
  const open = await run.submit("forward_backward", pass(bad));
  await before.close();
  const after = await startTrainingServer({ folder, trainer: trainer() });
  try {
    const again = await NativeRunClient.resolve(after, { run_name: "kept" });
    const { contributing_operation_ids } = await again.perform("optim_step", { optimizer: ADAM });
    expect(contributing_operation_ids).toEqual([operation_id, open]);
    // they are removed after the end of the step is recorded
    const gradients = join(folder, "training/models", run.runId, "gradients");
    await expect.poll(() => readdirSync(gradients)).toEqual([]);
  } finally {
    await after.close();
  }
});

describe("refuses", () => {
  const resolve = (fields: object) =>
    server.call("POST", "/v1/training/runs:resolve", { request_id: "r", spec: SPEC, initial_state: null, ...fields });

  it.each([
    [{ spec: { ...SPEC, base_model: "nope" } }, 422, /base model nope is not here/],
    [{ spec: { ...SPEC, lora_rank: 64 } }, 422, /max-lora-rank 16/],
    [{ spec: { ...SPEC, lora_target_modules: ["q_proj"] } }, 422, /trains all linear layers/],
    [{ spec: { ...SPEC, dtype: "float8" } }, 422, /bfloat16/],
    [{ initial_state: { source: { kind: "wandb_artifact", artifact: "a/b/c:v1" } } }, 422, /no W&B artifacts/],
    [{ initial_state: { source: { kind: "service_checkpoint", checkpoint_id: "x" } } }, 422, /RUN_ID@VERSION/],
    [{ run_name: "" }, 422, /run_name/],
  ])("to resolve %j", async (fields, status, message) => {
    const answer = await resolve(fields);
    expect(answer.json.error.message).toMatch(message);
    expect(answer.status).toBe(status);
  });

  const row = (name: string, change: object) => ({
    ...good,
    rows: good.rows.map((each) => (each.name === name ? { ...each, ...change } : each)),
  });
  const without = (name: string) => ({ ...good, rows: good.rows.filter((each) => each.name !== name) });
  const spans = (spans: object[]) => ({ values: { encoding: "spans", default: 0, spans } });

  it.each([
    ["no matrices", pass(), /at least one matrix/],
    ["an id twice", pass(good, good), /matrices\.1\.matrix_id: .*twice/],
    ["a token outside the vocabulary", pass(rollout("m", [1], [256], 1)), /outside the vocabulary of 256/],
    ["a sequence that is too long", pass(rollout("m", new Array(64).fill(1), [2], 1)), /more than 64 tokens/],
    ["nothing to train", pass(rollout("m", [1], [2], 0)), /nothing to train/],
    ["a missing row", pass(without("advantages")), /needs the row advantages/],
    ["an unknown row", pass(row("advantages", { name: "rewards" })), /rows\.3\.name/],
    ["a wrong number of values", pass(row("advantages", { shape: [7, 1] })), /the shape has 7 values/],
    [
      "a value that is no number",
      pass(row("advantages", { values: { encoding: "dense", data: [1, 2, 3, "4", 5, 6] } })),
      /float32/,
    ],
    [
      "a huge row in few bytes",
      pass(row("advantages", { shape: [2 ** 20, 256], ...spans([]) })),
      /up to 1048576 values/,
    ],
    [
      "overlapping spans",
      pass(
        row(
          "policy_version",
          spans([
            { start: 0, end: 2, value: 1 },
            { start: 1, end: 3, value: 1 },
          ]),
        ),
      ),
      /without overlap/,
    ],
    ["an unknown loss", { ...pass(good), loss: { name: "dpo" } }, /cross_entropy, importance_sampling, cispo/],
    ["a reversed clip", { ...pass(good), loss: { ...CISPO, clip_low_threshold: 9 } }, /must not exceed/],
    ["expert routes", { ...pass(good), batch: { ...batchOf(good), routes: [{}] } }, /experts/],
    ["packed inputs", { ...pass(good), retain_packed_input: true }, /send the batch again/],
    ["a captured batch", { ...pass(good), batch: { kind: "captured" } }, /batch\.kind/],
    ["advantages beside cross_entropy", { ...pass(good), loss: { name: "cross_entropy" } }, /does not use the row/],
  ])("a pass with %s", async (_, fields, message) => {
    const run = await NativeRunClient.resolve(server);
    const answer = await run.send("forward_backward", fields);
    expect(answer.json.error.message).toMatch(message);
    expect(answer.status).toBe(422);
    expect((await server.call("GET", run.path(""))).json.next_sequence_id).toBe(0);
  });

  it("an alias that is the base model's name, and a checkpoint that is not there", async () => {
    const run = await NativeRunClient.resolve(server);
    expect((await run.send("save_weights_for_sampler", publication("tiny"))).status).toBe(409);
    expect((await run.send("save_weights_for_sampler", publication("a/b"))).status).toBe(422);
    const source = { kind: "service_checkpoint", checkpoint_id: `${run.runId}@9` };
    expect((await run.send("load_state", { source })).status).toBe(404);
    expect((await server.call("GET", run.path("/operations/none"))).status).toBe(404);
    expect((await server.call("POST", "/v1/training/runs/none/optim_step", { request_id: "a" })).status).toBe(404);
  });
});

it("says that the trainer takes no runs, and needs no trainer for that", async () => {
  const jobsOnly = await startTrainingServer({ offersRuns: false });
  try {
    const body = { request_id: "one", spec: SPEC, run_name: null, initial_state: null };
    const { status, json } = await jobsOnly.call("POST", "/v1/training/runs:resolve", body);
    expect(status).toBe(501);
    expect(json.error.message).toContain("training runs need a server with --trainer onnx, or send jobs");
  } finally {
    await jobsOnly.close();
  }
});
