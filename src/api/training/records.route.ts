// Routes that read the record of a job: what it was given, and what became of it.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import { mean } from "../../training/data/advantage.ts";
import { TOKEN_FIELDS } from "../../training/gradient/token-numbers.ts";
import type { KeptSequence, RolloutVerdict } from "../../training/records/prepared-record.ts";
import type { KeptGroup, KeptTrajectory } from "../../training/records/record-reader.ts";
import type { TrainingService } from "../../training/service.ts";
import { TrainingError } from "../../training/training-error.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { type ById, route } from "../route.ts";
import { page } from "../schema/list.ts";
import { leftOutTokens } from "./left-out-tokens.ts";
import { readRecord } from "./params.ts";
import {
  GroupList,
  GroupPage,
  type GroupRow,
  Matches,
  SearchPage,
  TokenNumbersBody,
  TrajectoryRecordBody,
  type TrajectoryRow,
} from "./record.schema.ts";
import { exceptionsOf } from "./record.wire.ts";
import { invalid, readQuery } from "./validation.ts";

// The record of a job as clients see it: rows of groups, and one trajectory with its tokens.

function presentGroup({ group, sent, rollouts }: KeptGroup): GroupRow {
  const { rewards, size, task, notes } = sent;
  const average = rewards.length > 0 ? mean(rewards) : null;
  const verdicts: Record<string, number> = {};
  for (const { status } of rollouts ?? []) verdicts[status] = (verdicts[status] ?? 0) + 1;
  return {
    ...{ id: String(group), group, task, rewards, mean: average },
    spread: average === null ? null : Math.sqrt(mean(rewards.map((reward) => (reward - average) ** 2))),
    verdicts,
    trajectories: Array.from({ length: size }, (_, i) => {
      const verdict = rollouts?.[i];
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
function presentTrajectory(
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
    ...{ job_status: job.status, from_step: job.fromStep, reward: group.sent.rewards[index] ?? null },
    ...presentVerdict(verdict ?? undefined),
    ...{ weight: verdict?.weight ?? null, message: verdict?.reason ?? null },
    ...asSent(sent),
    sequences: sequences.map((sequence) => presentSequence(sequence, advantage ?? 0, tokenTexts)),
    exceptions: groupText === null ? [] : exceptionsOf(JSON.parse(groupText)),
  };
}

/** What the trainer computed for the trained tokens of a sequence of a trajectory. */
interface SequenceNumbers {
  /** Its index in the trajectory. */
  index: number;
  sequence: KeptSequence;
  rows: Float32Array;
}

function presentNumbers(found: readonly SequenceNumbers[]) {
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

function trainedPositions({ mask }: KeptSequence): number[] {
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

function presentVerdict(verdict: RolloutVerdict | undefined) {
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

const DEFAULT_LIMIT = 20;
const TRAJECTORY = "/v1/preview/training-jobs/:id/groups/:group/trajectories/:trajectory";

interface TrajectoryPath {
  Params: { id: string; group: string; trajectory: string };
}

export function registerTrainingRecords(app: FastifyInstance, training: TrainingService): void {
  app.get<ById>(
    "/v1/preview/training-jobs/:id/groups",
    route("training", "Groups of a job, or examples of a supervised one, with rewards and verdicts", {
      query: GroupPage,
      reply: GroupList,
    }),
    async (request) => {
      const { after, limit } = readQuery(GroupPage, request.query);
      const job = await training.jobs.owned(request.params.id, readableBy(principalOf(request)));
      const from = (after ?? -1) + 1;
      const count = limit ?? DEFAULT_LIMIT;
      const found = await readRecord(training, job, (record) => record.groups(from, from + count + 1));
      return page(found, count, presentGroup);
    },
  );

  app.get<ById>(
    "/v1/preview/training-jobs/:id/matches",
    route("training", "Trajectories of a job in which a text is said", { query: SearchPage, reply: Matches }),
    async (request) => {
      const { text, after, limit } = readQuery(SearchPage, request.query);
      const job = await training.jobs.owned(request.params.id, readableBy(principalOf(request)));
      return readRecord(training, job, async (record) => {
        const from = (after ?? -1) + 1;
        const to = Math.min(from + (limit ?? DEFAULT_LIMIT), record.groupCount);
        const found = await record.saying(text, from, to);
        const data = Array.from(found, ([group, trajectories]) => ({ id: String(group), group, trajectories }));
        return { object: "list", data, searched_to: to > from ? to - 1 : null, has_more: to < record.groupCount };
      });
    },
  );

  app.get<TrajectoryPath>(
    TRAJECTORY,
    route("training", "One trajectory of a job as it was sent, with its verdict and tokens", {
      reply: TrajectoryRecordBody,
    }),
    async (request) => {
      const { job, index, found } = await find(training, request);
      const { baseModel } = await training.models.owned(job.modelId, readableBy(principalOf(request)));
      const base = training.bases.get(baseModel);
      const sequences =
        found.sequences.length > 0 || base === null ? found.sequences : await leftOutTokens(job, found, base);
      // without a tokenizer here, ids have to do
      return presentTrajectory(job, index, { ...found, sequences }, (ids) => base?.encoder.tokenTexts(ids) ?? []);
    },
  );

  app.get<TrajectoryPath>(
    `${TRAJECTORY}/tokens`,
    route("training", "What the trainer computed for every trained token of a trajectory", { reply: TokenNumbersBody }),
    async (request) => {
      const { job, found } = await find(training, request);
      const numbers: SequenceNumbers[] = [];
      for (const [index, sequence] of found.sequences.entries()) {
        if (sequence.firstRow === null) continue;
        const rows = await training.jobs.tokenRows(job, sequence.firstRow, trainedPositions(sequence).length);
        if (!rows) throw new TrainingError("no_token_numbers", { id: job.id });
        numbers.push({ index, sequence, rows });
      }
      if (numbers.length === 0) throw new TrainingError("no_token_numbers", { id: job.id });
      return presentNumbers(numbers);
    },
  );
}

async function find(training: TrainingService, request: FastifyRequest<TrajectoryPath>) {
  const { params } = request;
  const job = await training.jobs.owned(params.id, readableBy(principalOf(request)));
  const [group, index] = [indexFrom(params.group, "group"), indexFrom(params.trajectory, "trajectory")];
  const found = await readRecord(training, job, (record) => record.trajectory(group, index));
  if (!found) throw new TrainingError("unknown_trajectory", { group, trajectory: index });
  return { job, index, found };
}

function indexFrom(text: string, name: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalid(["path", name], "int_parsing", "Input should be a whole number from 0", text);
}
