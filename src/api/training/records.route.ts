// Routes that read the record of a job: what it was given, and what became of it.

import type { FastifyInstance, FastifyRequest } from "fastify";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { RecordReader } from "../../training/records/record-reader.ts";
import type { TrainingService } from "../../training/service.ts";
import { TrainingError } from "../../training/training-error.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { page } from "./paging.ts";
import {
  presentGroup,
  presentNumbers,
  presentTrajectory,
  type SequenceNumbers,
  trainedPositions,
} from "./record.present.ts";
import { GroupList, GroupPage, Matches, SearchPage, TokenNumbersBody, TrajectoryRecordBody } from "./record.schema.ts";
import { documented } from "./training.schema.ts";
import { invalid, readQuery } from "./validation.ts";

const DEFAULT_LIMIT = 20;
const TRAJECTORY = "/v1/preview/training-jobs/:id/groups/:group/trajectories/:trajectory";

interface TrajectoryPath {
  Params: { id: string; group: string; trajectory: string };
}

export function registerTrainingRecords(app: FastifyInstance, training: TrainingService): void {
  app.get<{ Params: { id: string } }>(
    "/v1/preview/training-jobs/:id/groups",
    documented("Groups of a job, or examples of a supervised one, with rewards and verdicts", {
      query: GroupPage,
      response: GroupList,
    }),
    async (request) => {
      const { after, limit } = readQuery(GroupPage, request.query);
      const job = await training.jobs.owned(request.params.id, readableBy(principalOf(request)));
      const from = after === undefined || after === null ? 0 : after + 1;
      const count = limit ?? DEFAULT_LIMIT;
      const found = await reading(training, job, (record) => record.groups(from, from + count + 1));
      return page(found, count, presentGroup);
    },
  );

  app.get<{ Params: { id: string } }>(
    "/v1/preview/training-jobs/:id/matches",
    documented("Trajectories of a job in which a text is said", { query: SearchPage, response: Matches }),
    async (request) => {
      const { text, after, limit } = readQuery(SearchPage, request.query);
      const job = await training.jobs.owned(request.params.id, readableBy(principalOf(request)));
      return reading(training, job, async (record) => {
        const from = after === undefined || after === null ? 0 : after + 1;
        const to = Math.min(from + (limit ?? DEFAULT_LIMIT), record.groupCount);
        const found = await record.saying(text, from, to);
        const data = Array.from(found, ([group, trajectories]) => ({ id: String(group), group, trajectories }));
        return { object: "list", data, searched_to: to > from ? to - 1 : null, has_more: to < record.groupCount };
      });
    },
  );

  app.get<TrajectoryPath>(
    TRAJECTORY,
    documented("One trajectory of a job as it was sent, with its verdict and tokens", {
      response: TrajectoryRecordBody,
    }),
    async (request) => {
      const { job, index, found } = await find(training, request);
      const { baseModel } = await training.models.owned(job.modelId, readableBy(principalOf(request)));
      const encoder = training.bases.get(baseModel)?.encoder;
      // without a tokenizer here, ids have to do
      return presentTrajectory(job, index, found, (ids) => encoder?.tokenTexts(ids) ?? []);
    },
  );

  app.get<TrajectoryPath>(
    `${TRAJECTORY}/tokens`,
    documented("What the trainer computed for every trained token of a trajectory", { response: TokenNumbersBody }),
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
  const found = await reading(training, job, (record) => record.trajectory(group, index));
  if (!found) throw new TrainingError("unknown_trajectory", { group, trajectory: index });
  return { job, index, found };
}

async function reading<T>(
  training: TrainingService,
  job: JobRecord,
  work: (record: RecordReader) => Promise<T>,
): Promise<T> {
  const record = await training.jobs.openRecord(job);
  try {
    return await work(record);
  } finally {
    await record.close();
  }
}

function indexFrom(text: string, name: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalid(["path", name], "int_parsing", "Input should be a whole number from 0", text);
}
