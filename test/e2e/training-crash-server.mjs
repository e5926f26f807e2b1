// A process to be killed. It opens the data directory and the database in its arguments, resumes the jobs there, then submits new ones as fast
// as they are accepted and prints their ids. Runs compiled code.
import { join } from "node:path";
import { AdapterSlots } from "../../dist/engine/adapter-slots.js";
import { createLog } from "../../dist/observe/log.js";
import { lockDataDir } from "../../dist/store/data-dir.js";
import { openPostgres } from "../../dist/store/postgres/open.js";
import { openSqlite } from "../../dist/store/sqlite.js";
import { BaseModels } from "../../dist/training/base-models.js";
import { RL_DEFAULTS } from "../../dist/training/config.js";
import { SharedFolder } from "../../dist/training/files/shared-folder.js";
import { StepFolders } from "../../dist/training/files/step-folders.js";
import { ProcessTrainer } from "../../dist/training/process/process-trainer.js";
import { ForkedProcess } from "../../dist/training/process/trainer-process.js";
import { TrainingService } from "../../dist/training/service.js";

const [folder, checkpoint, database] = process.argv.slice(2);
lockDataDir(folder);
const engine = {
  info: { maxLoras: 4, maxLoraRank: 8 },
  loadAdapter: async (path) => ({ version: path, rank: 2 }),
  unloadAdapter: async () => {},
};
const encoder = { vocabSize: 256, eosTokenId: 0 };
const base = {
  name: "tiny",
  aliases: [],
  folder: checkpoint,
  weights: "float32",
  maxSequenceLength: 64,
  limits: async () => ({ maxSequenceLength: 64, maxTrainedLength: 64 }),
  encoder,
  engine,
  slots: new AdapterSlots(engine),
};
const training = join(folder, "training");
const service = new TrainingService({
  store: database ? await openPostgres(database) : openSqlite(join(folder, "flywheel.db")),
  workspace: new StepFolders(training, new SharedFolder(training, 0)),
  bases: new BaseModels([base]),
  trainer: new ProcessTrainer({
    start: () =>
      new ForkedProcess(new URL("../support/trainer-process.mjs", import.meta.url), {
        ...process.env,
        FAKE_TRAINER_STEP_MS: "1",
      }),
    idleMs: 60_000,
    cancelGraceMs: 1000,
  }),
  log: createLog({ level: "error", format: "text" }),
  lora: { rank: 2, alpha: 4 },
  ...{ maxParallelJobs: 2, maxStepsPerModel: 1000, maxOpenJobs: 1000, maxBytesPerOwner: 1e12, threads: 1 },
  ...{ stepGraceMs: 0, keepRecords: { bytes: 2 ** 30, ms: 86_400_000 }, activationBytes: 2 ** 30 },
  isServedName: () => false,
  offersRuns: true,
});
await service.start();
const names = { owner: "me", entity: "e", project: "p", baseModel: "tiny", returnExisting: true, from: null };
const models = [];
for (const name of ["a", "b"]) models.push(await service.models.create({ ...names, name }));
const choice = (id) => ({
  message: { role: "assistant", content: "" },
  ...{ promptTokenIds: [1, 2], tokenIds: [id], logprobs: [-1], tokens: null },
});
const trajectory = (id, reward) => ({
  histories: [{ items: [{ choice: choice(id) }], tools: null }],
  ...{ reward, initialPolicyVersion: null, finalPolicyVersion: null, metrics: {} },
});
process.stdout.write("ready\n");
for (let i = 0; ; i++) {
  const draft = await service.jobs.draft("me");
  await draft.input.append({ trajectories: [trajectory(3, 0), trajectory(4, 1)], exceptions: 0, metrics: {} });
  const spec = { kind: "rl", config: RL_DEFAULTS };
  const submission = { owner: "me", modelId: models[i % 2].id, spec, idempotencyKey: null, requestHash: "" };
  const job = await service.jobs.submit(draft, submission);
  process.stdout.write(`${job.id}\n`);
  await new Promise((resolve) => setTimeout(resolve, 20));
}
