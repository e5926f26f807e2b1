// A training run with the real trainer on a server whose files are in a bucket: gradients wait there for the next step.

import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createLog } from "../../src/observe/log.ts";
import { compiledEntry } from "../../src/system/package.ts";
import { openBucket } from "../../src/training/files/s3/open-bucket.ts";
import { SharedBucket } from "../../src/training/files/s3/shared-bucket.ts";
import { StepFolders } from "../../src/training/files/step-folders.ts";
import { ProcessTrainer } from "../../src/training/process/process-trainer.ts";
import { ForkedProcess } from "../../src/training/process/trainer-process.ts";
import { ADAM, batchOf, CISPO, NativeRunClient, rollout } from "../wire/training/native-run-client.ts";
import { startTrainingServer } from "../wire/training/training-server.ts";
import { useS3 } from "./use-s3.ts";

const s3 = useS3();

it("forward_backward leaves its gradients in the bucket, and optim_step makes a step of them", async () => {
  const local = mkdtempSync(join(tmpdir(), "s3-run-"));
  const bucket = await openBucket({ bucket: s3().bucket, prefix: "" });
  const log = createLog({ level: "error", format: "text" });
  const shared = new SharedBucket(bucket, { folder: local, cacheBytes: 2 ** 30, log });
  const trainer = new ProcessTrainer({
    start: () => new ForkedProcess(compiledEntry(import.meta.url, "../../src/training/onnx/trainer-entry.ts")),
    ...{ idleMs: 60_000, cancelGraceMs: 1_000 },
  });
  const server = await startTrainingServer({ trainer, workspace: new StepFolders(local, shared) });
  try {
    const run = await NativeRunClient.resolve(server);
    const pass = {
      ...{ batch: batchOf(rollout("good", [10, 11, 12], [20, 21, 22], 1)), loss: CISPO },
      ...{ collect_packing_shapes: false, retain_packed_input: false, return_token_logprobs: false },
    };
    const first = await run.perform("forward_backward", pass);
    const gradients = `models/${run.runId}/gradients/`;
    expect(s3().keys(gradients)).toEqual([`${gradients}${first.operation_id}.safetensors`]);
    expect(readdirSync(join(local, gradients))).toEqual([]);
    const step = await run.perform("optim_step", { optimizer: ADAM });
    expect(step).toMatchObject({ learner_version: 1, contributing_operation_ids: [first.operation_id] });
    await expect.poll(() => s3().keys(gradients)).toEqual([]);
    const steps = new Set(
      s3()
        .keys(`models/${run.runId}/`)
        .map((key) => key.split("/")[2]),
    );
    expect([...steps].map((name) => name!.slice(0, 7)).sort()).toEqual(["step-0-", "step-1-"]);
    expect(s3().keys("jobs/")).toEqual([]);
  } finally {
    await server.close();
  }
});
