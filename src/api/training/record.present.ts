// The record of a job as clients see it: rows of groups, and one trajectory with its tokens.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import { mean } from "../../training/data/advantage.ts";
import { TOKEN_FIELDS } from "../../training/gradient/token-numbers.ts";
import type { KeptSequence, TryVerdict } from "../../training/records/prepared-record.ts";
import type { KeptGroup, KeptTrajectory } from "../../training/records/record-reader.ts";
import type { GroupRow, TrajectoryRow } from "./record.schema.ts";
import { exceptionsOf } from "./record.wire.ts";

export function presentGroup({ group, sent, tries }: KeptGroup): GroupRow {
  const { rewards, size, task, notes } = sent;
  const average = rewards.length > 0 ? mean(rewards) : null;
  const verdicts: Record<string, number> = {};
  for (const { status } of tries ?? []) verdicts[status] = (verdicts[status] ?? 0) + 1;
  return {
    ...{ id: String(group), group, task, rewards, mean: average },
    spread: average === null ? null : Math.sqrt(mean(rewards.map((reward) => (reward - average) ** 2))),
    verdicts,
    trajectories: Array.from({ length: size }, (_, i) => {
      const verdict = tries?.[i];
      return {
        ...{ trajectory: i, reward: rewards[i] ?? null, ...presentVerdict(verdict) },
        ...{ tokens: verdict?.tokens ?? null, trainable_tokens: verdict?.trainableTokens ?? null },
        initial_policy_version: sent.versions?.[i] ?? null,
      };
    }),
    ...notes,
  };
}

/** `tokenTexts` are those of a sequence of ids. */
export function presentTrajectory(
  job: JobRecord,
  index: number,
  { group, text, groupText, verdict, sequences }: KeptTrajectory,
  tokenTexts: (ids: readonly number[]) => string[],
): TrajectoryRow {
  const sent = JSON.parse(text) as JsonObject;
  const advantage = verdict?.advantage ?? null;
  return {
    object: "trajectory",
    ...{ job_id: job.id, model_id: job.modelId, group: group.group, trajectory: index, size: group.sent.size },
    ...{ from_step: job.fromStep, reward: group.sent.rewards[index] ?? null, ...presentVerdict(verdict ?? undefined) },
    ...{ weight: verdict?.weight ?? null, message: verdict?.reason ?? null },
    ...asSent(sent),
    sequences: sequences.map((sequence) => presentSequence(sequence, advantage ?? 0, tokenTexts)),
    exceptions: groupText === null ? [] : exceptionsOf(JSON.parse(groupText)),
  };
}

/** What the trainer computed for the trained tokens of a sequence of a trajectory. */
export interface SequenceNumbers {
  /** Its index in the trajectory. */
  index: number;
  sequence: KeptSequence;
  rows: Float32Array;
}

export function presentNumbers(found: readonly SequenceNumbers[]) {
  return {
    object: "token_numbers" as const,
    fields: TOKEN_FIELDS,
    sequences: found.map(({ index, sequence, rows }) => ({
      sequence: index,
      positions: trainedPositions(sequence),
      values: Object.fromEntries(TOKEN_FIELDS.map((field, f) => [field, column(rows, f)])),
    })),
  };
}

export function trainedPositions({ mask }: KeptSequence): number[] {
  return mask.flatMap((bit, i) => (bit === 1 ? [i] : []));
}

/** NaN becomes null in JSON. */
function column(rows: Float32Array, field: number): number[] {
  const count = rows.length / TOKEN_FIELDS.length;
  return Array.from({ length: count }, (_, row) => rows[row * TOKEN_FIELDS.length + field]!);
}

/** Fields that were left out are empty or null. An example has `messages`. */
function asSent(sent: JsonObject) {
  const list = (value: unknown) => (Array.isArray(value) ? value : []);
  const object = (value: unknown) => (isJsonObject(value) ? value : null);
  return {
    messages_and_choices: list(sent.messages_and_choices ?? sent.messages),
    tools: Array.isArray(sent.tools) ? sent.tools : null,
    additional_histories: list(sent.additional_histories),
    exchanges: object(sent.exchanges),
    metadata: object(sent.metadata),
    metrics: object(sent.metrics),
    logs: Array.isArray(sent.logs) ? sent.logs : null,
    start_time: typeof sent.start_time === "string" ? sent.start_time : null,
    initial_policy_version: (sent.initial_policy_version as number | null | undefined) ?? null,
    final_policy_version: (sent.final_policy_version as number | null | undefined) ?? null,
  };
}

function presentVerdict(verdict: TryVerdict | undefined) {
  const status = verdict?.status ?? null;
  return { status, reason: status === "trained" ? null : status, advantage: verdict?.advantage ?? null };
}

function presentSequence(
  { ids, mask, logprobs, step, stepTokens }: KeptSequence,
  advantage: number,
  tokenTexts: (ids: readonly number[]) => string[],
) {
  return {
    ...{ tokens: ids, token_strings: tokenTexts(ids), mask, logprobs },
    advantages: mask.map((bit) => (bit === 1 ? advantage : 0)),
    ...{ gradient_step: step ?? null, gradient_step_tokens: stepTokens ?? null },
  };
}
