// Routes that read the record of a job: what it was given, and what became of it.

import type { FastifyInstance } from "fastify";
import type { JobRecord } from "../../store/job-table.ts";
import type { RecordReader } from "../../training/records/record-reader.ts";
import type { TrainingService } from "../../training/service.ts";
import { TrainingError } from "../../training/training-error.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { page } from "./paging.ts";
import { presentGroup, presentTrajectory } from "./record.present.ts";
import { GroupList, GroupPage, TrajectoryRecordBody } from "./record.schema.ts";
import { documented } from "./training.schema.ts";
import { invalid, readQuery } from "./validation.ts";

const DEFAULT_LIMIT = 20;

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

  app.get<TrajectoryPath>(
    "/v1/preview/training-jobs/:id/groups/:group/trajectories/:trajectory",
    documented("One trajectory of a job as it was sent, with its verdict and tokens", {
      response: TrajectoryRecordBody,
    }),
    async (request) => {
      const { params } = request;
      const owner = readableBy(principalOf(request));
      const job = await training.jobs.owned(params.id, owner);
      const [group, trajectory] = [index(params.group, "group"), index(params.trajectory, "trajectory")];
      const found = await reading(training, job, (record) => record.trajectory(group, trajectory));
      if (!found) throw new TrainingError("unknown_trajectory", { group, trajectory });
      const { baseModel } = await training.models.owned(job.modelId, owner);
      const encoder = training.bases.get(baseModel)?.encoder;
      // without a tokenizer here, ids have to do
      return presentTrajectory(job, trajectory, found, (ids) => encoder?.tokenTexts(ids) ?? []);
    },
  );
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

function index(text: string, name: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalid(["path", name], "int_parsing", "Input should be a whole number from 0", text);
}
