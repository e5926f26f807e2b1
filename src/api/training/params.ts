// What several routes name in their requests: pages, steps, a model of the caller's, the record of a job.

import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { ModelRecord } from "../../store/tables/models.ts";
import type { RecordReader } from "../../training/records/record-reader.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, readableBy } from "../http/auth.ts";
import { PageQuery } from "./training.schema.ts";
import { readQuery } from "./validation.ts";

const DEFAULT_LIMIT = 20;

/** An empty string counts as absent. */
export function pageQuery(query: unknown): { after: string | null; limit: number } {
  const given = isJsonObject(query) ? query : {};
  const { after, limit } = readQuery(PageQuery, { after: given.after || null, limit: given.limit || null });
  return { after: after ?? null, limit: limit ?? DEFAULT_LIMIT };
}

/** From a path: a number or "latest". */
export function stepFrom(text: string): number | "latest" {
  if (text === "latest") return text;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new ServiceError("unknown_checkpoint", `${text} is not a step; use a number or "latest".`);
}

/**
 * A model of the caller's workspace; 404 if the caller cannot see it, 403 for an admin of another workspace: only a workspace itself
 * trains its models.
 */
export async function ownModel(training: TrainingService, id: string, principal: Principal): Promise<ModelRecord> {
  const model = await training.models.owned(id, readableBy(principal));
  if (model.owner === principal.workspace.id) return model;
  const message = "The model belongs to another workspace, and only tokens of that workspace can train it.";
  throw new ServiceError("other_workspace", message);
}

/** What is kept of a job's data, for as long as some work takes. */
export async function readRecord<T>(
  { jobs }: TrainingService,
  job: JobRecord,
  work: (record: RecordReader) => Promise<T>,
): Promise<T> {
  const record = await jobs.openRecord(job);
  try {
    return await work(record);
  } finally {
    await record.close();
  }
}
