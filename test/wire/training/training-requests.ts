// What a client of the training endpoints sends: models, choices, trajectories and jobs as an ART client writes them.

import { expect } from "vitest";
import { toyIds } from "../../support/toy-encoder.ts";
import type { TrainingServer } from "./training-server.ts";

let count = 0;
export const modelBody = () => ({
  entity: null,
  project: "p",
  name: `m${count++}`,
  base_model: "tiny",
  return_existing: true,
});
export async function newModel(server: TrainingServer): Promise<{ id: string; name: string }> {
  const { status, json } = await server.call("POST", "/v1/preview/models", modelBody());
  expect(status).toBe(200);
  return json;
}

/** A choice as the chat endpoint of this server returns it and an ART client sends it back, nulls spelled out. */
export const choice = (reply: string, fields: Record<string, unknown> = {}) => ({
  finish_reason: "stop",
  index: 0,
  logprobs: {
    content: toyIds(reply).map((id) => ({ token: `token_id:${id}`, logprob: -0.5, bytes: null, top_logprobs: [] })),
    refusal: null,
  },
  message: { content: reply, refusal: null, role: "assistant", annotations: null, audio: null, tool_calls: null },
  ...fields,
});
export const trajectory = (reply: string, reward: number, fields: Record<string, unknown> = {}) => ({
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
export const group = (...trajectories: unknown[]) => ({
  trajectories,
  exceptions: [],
  metadata: {},
  metrics: {},
  logs: [],
});
export const goodGroup = () => group(trajectory("a1 <e>", 1), trajectory("a2 <e>", 0));
/** What an ART client sends when nothing was configured. */
export const artConfig = {
  ...{ advantage_balance: 0, epsilon: null, epsilon_high: null, importance_sampling_level: "token" },
  ...{ kimi_k2_tau: null, kl_penalty_coef: 0, kl_penalty_reference_step: null, kl_penalty_step_lag: null },
  ...{ kl_ref_adapter_path: null, learning_rate: 5e-6, logprob_calculation_chunk_size: 1024, loss_fn: "cispo" },
  ...{ mask_prob_ratio: false, max_negative_advantage_importance_sampling_weight: null, normalize_advantages: true },
  ...{ num_trajectories_learning_rate_multiplier_power: 0, packed_sequence_length: null, plot_tensors: false },
  ...{ ppo: false, precalculate_logprobs: false, scale_rewards: true, truncated_importance_sampling: null },
};
export const jobBody = (modelId: string, groups: unknown[] = [goodGroup()], more: object = {}) => ({
  model_id: modelId,
  trajectory_groups: groups,
  ...more,
});

export async function finishedJob(server: TrainingServer, id: string) {
  for (;;) {
    const { json } = await server.call("GET", `/v1/preview/training-jobs/${id}`);
    if (!["PENDING", "RUNNING"].includes(json.status)) return json;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Polls as an ART client does: the cursor does not move past training_started. */
export async function artPoll(server: TrainingServer, id: string) {
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
