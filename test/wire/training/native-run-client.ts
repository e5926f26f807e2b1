// A client of training runs that sends what OpenPipe ART's native client sends, and checks what that client checks.

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Answer, TrainingServer } from "./training-server.ts";

export const SPEC = {
  base_model: "tiny",
  dtype: "bfloat16",
  lora_rank: 2,
  lora_target_modules: ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"],
  seed: 17,
};

type Row = { name: string; dtype: string; shape: number[]; values: object };

function dense(name: string, dtype: string, shape: number[], data: number[]): Row {
  return { name, dtype, shape, values: { encoding: "dense", data } };
}

/** `prompt` and `reply` as one matrix, as ART lowers a rollout: values sit where the token is predicted. */
export function rollout(id: string, prompt: number[], reply: number[], advantage: number) {
  const ids = [...prompt, ...reply];
  const length = ids.length;
  const active = ids.map((_, p) => (p >= prompt.length - 1 && p + 1 < length ? 1 : 0));
  return {
    kind: "matrix",
    matrix_id: id,
    packing_affinity_id: "prompt-0",
    rows: [
      dense("token_ids", "int64", [length], ids),
      dense("target_token_ids", "int64", [length, 1], [...ids.slice(1), 0]),
      dense("loss_weights", "float32", [length, 1], active),
      dense(
        "advantages",
        "float32",
        [length, 1],
        active.map((bit) => bit * advantage),
      ),
      dense(
        "behavior_logprobs",
        "float32",
        [length, 1],
        active.map((bit) => bit * -5),
      ),
      {
        ...{ name: "policy_version", dtype: "int64", shape: [length] },
        values: { encoding: "spans", default: -1, spans: [{ start: prompt.length - 1, end: length - 1, value: 0 }] },
      },
    ],
  };
}

export function batchOf(...matrices: ReturnType<typeof rollout>[]) {
  return { kind: "token_matrix", matrices, routes: [] };
}

export const CISPO = { name: "cispo", normalize_advantages: false, clip_low_threshold: 0, clip_high_threshold: 5 };

export const ADAM = {
  learning_rate: 1e-2,
  beta1: 0.9,
  beta2: 0.99,
  eps: 1e-13,
  weight_decay: 0.1,
  grad_clip_norm: 0.1,
};

const OPERATION_FIELDS = [
  ...["operation_id", "run_id", "request_id", "sequence_id", "kind", "status", "learner_parent_version"],
  ...["reserved_output_learner_version", "admitted_at", "started_at", "ended_at", "cancel_requested"],
  ...["latest_event_cursor", "result_summary", "result_ref", "error"],
].sort();

export class NativeRunClient {
  readonly runId: string;
  readonly #server: TrainingServer;
  sequence: number;
  version: number;

  // biome-ignore lint/suspicious/noExplicitAny: a run as it came over the wire
  private constructor(server: TrainingServer, run: any) {
    this.#server = server;
    this.runId = run.run_id;
    this.sequence = run.next_sequence_id;
    this.version = run.projected_learner_version;
  }

  static async resolve(server: TrainingServer, fields: object = {}): Promise<NativeRunClient> {
    const body = { request_id: `resolve-${randomUUID()}`, spec: SPEC, initial_state: null, ...fields };
    const { status, json } = await server.call("POST", "/v1/training/runs:resolve", body);
    expect(status, JSON.stringify(json)).toBe(200);
    expect(json.spec).toEqual(SPEC);
    expect(json.status).toBe("open");
    return new NativeRunClient(server, json);
  }

  path(rest: string): string {
    return `/v1/training/runs/${this.runId}${rest}`;
  }

  /** Submits a command without looking at the answer. */
  send(kind: string, fields: object, requestId = `${kind}-${this.sequence}`): Promise<Answer> {
    const body = { request_id: requestId, sequence_id: this.sequence, ...fields };
    return this.#server.call("POST", this.path(`/${kind}`), body);
  }

  /** Submits a command that must be admitted; returns its id. */
  async submit(kind: string, fields: object): Promise<string> {
    const { status, json } = await this.send(kind, fields);
    expect(status, JSON.stringify(json)).toBe(200);
    expect(Object.keys(json).sort()).toEqual(OPERATION_FIELDS);
    const transition = kind === "optim_step" || kind === "load_state";
    expect(json).toMatchObject({
      run_id: this.runId,
      sequence_id: this.sequence,
      kind,
      learner_parent_version: this.version,
    });
    expect(json.reserved_output_learner_version).toBe(transition ? this.version + 1 : null);
    this.sequence++;
    if (transition) this.version++;
    return json.operation_id;
  }

  async ended(operationId: string) {
    for (;;) {
      const { json } = await this.#server.call("GET", this.path(`/operations/${operationId}`));
      if (!["admitted", "running"].includes(json.status)) return json;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Submits a command, waits for its end and returns its result. */
  async perform(kind: string, fields: object) {
    const operationId = await this.submit(kind, fields);
    const operation = await this.ended(operationId);
    expect(operation, JSON.stringify(operation)).toMatchObject({ status: "succeeded", error: null });
    const { status, json } = await this.#server.call("GET", this.path(`/operations/${operationId}/result`));
    expect(status).toBe(200);
    expect(json).toMatchObject({ operation_id: operationId, kind });
    return json;
  }
}
