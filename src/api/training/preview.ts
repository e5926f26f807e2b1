// Shows what a job would train, without training it (`dry_run`): tokens, masks, advantages and verdicts, in pieces of
// JSON. A preview refuses what a job would refuse.

import type { BaseModel } from "../../training/base-models.ts";
import type { RlConfig, SftConfig } from "../../training/config.ts";
import { prepareJob } from "../../training/data/prepare.ts";
import { prepareSft, type SftExample } from "../../training/data/prepare-sft.ts";
import { planRl } from "../../training/gradient/gradient-plan.ts";
import { readGroups, readInput } from "../../training/jobs/job-input.ts";
import type { JobDraft } from "../../training/jobs/jobs.ts";
import type { TrainingService } from "../../training/service.ts";
import { previewJson, sftPreviewJson } from "./present.ts";

export interface PreviewTarget {
  modelId: string;
  owner: string;
  base: BaseModel;
}

export async function previewRl(
  training: TrainingService,
  draft: JobDraft,
  { modelId, owner, base }: PreviewTarget,
  config: RlConfig,
): Promise<AsyncGenerator<string>> {
  await draft.input.finish();
  const { step } = await training.models.step(modelId, owner, "latest");
  await training.jobs.checkReference(modelId, config);
  const prepared = await prepareJob(readGroups(draft.path), {
    encoder: base.encoder,
    config,
    currentStep: step,
    preview: true,
    ...(await base.limits()),
  });
  planRl(prepared.sequences, config, 1);
  return previewJson(prepared, modelId, step);
}

export async function previewSft(
  training: TrainingService,
  draft: JobDraft,
  { modelId, owner, base }: PreviewTarget,
  config: SftConfig,
): Promise<AsyncGenerator<string>> {
  await draft.input.finish();
  const { step } = await training.models.step(modelId, owner, "latest");
  const prepared = await prepareSft(readInput<SftExample>(draft.path), base.encoder, config, await base.limits());
  return sftPreviewJson(prepared, modelId, step);
}
