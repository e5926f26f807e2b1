import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { toyEncoder, toyIds } from "../../../test/toy-encoder.ts";
import {
  ended,
  fakeTrainer,
  newModel,
  scored,
  submit,
  type TrainingBench,
  trainingBench,
} from "../../../test/training-bench.ts";
import { SFT_DEFAULTS } from "../config.ts";
import type { BatchSequence, Trainer } from "../contract.ts";
import type { JobReport } from "../jobs/job-work.ts";

let bench: TrainingBench;
afterEach(() => bench.close());

/** Leaves out every sequence that has this word in it. */
function without(word: string): Trainer {
  const trainer = fakeTrainer();
  return {
    async train(task, onStep, signal) {
      const result = await trainer.train(task, onStep, signal);
      const batch = readFileSync(task.batch, "utf8").trimEnd().split("\n");
      const dropped = batch.flatMap((line, sequence) =>
        (JSON.parse(line) as BatchSequence).ids.includes(toyEncoder.idOf(word)!)
          ? [{ sequence, reason: "too big" }]
          : [],
      );
      return { ...result, dropped };
    },
    close: () => trainer.close(),
  };
}

const reportOf = (id: string) => JSON.parse(bench.service.jobs.owned(id, "me").report!) as JobReport;

describe("what a trainer leaves out", () => {
  it("is in the report of the trajectories", async () => {
    bench = trainingBench({ trainer: without("a2") });
    const group = scored(["a1 <e>", 3], ["a2 <e>", 2], ["a3 <e>", 0]);
    const [mixed, lost] = group.trajectories;
    mixed!.histories = [...mixed!.histories, ...lost!.histories];
    lost!.histories = [...lost!.histories, ...lost!.histories];
    const job = await submit(bench, newModel(bench).id, [group]);
    await ended(bench, job);
    const { trajectories, totals } = reportOf(job.id);
    expect(trajectories).toMatchObject([
      { status: "trained", reason: "too big", sequences: 1, tokens: 11, trainableTokens: 2 },
      { status: "too_long", reason: "too big", advantage: 0 },
      { status: "trained", reason: null, sequences: 1 },
    ]);
    expect(totals.num_dropped_too_long).toBe(1);
  });

  it("is in the report of the examples", async () => {
    bench = trainingBench({ trainer: without("a2") });
    const draft = await bench.service.jobs.draft();
    for (const content of ["a1", "a2"]) {
      const messages = [
        { role: "user", content: "q1" },
        { role: "assistant", content },
      ];
      await draft.input.append({ messages, tools: null });
    }
    const job = await bench.service.jobs.submit(draft, {
      ...{ owner: "me", modelId: newModel(bench).id, idempotencyKey: null, requestHash: "" },
      spec: { kind: "sft", config: SFT_DEFAULTS },
    });
    await ended(bench, job);
    const { examples, totals } = reportOf(job.id);
    expect(examples).toMatchObject([{ status: "trained" }, { status: "too_long", reason: "too big" }]);
    expect(totals.num_dropped_trajectories).toBe(1);
  });
});

it("what does not fit the memory for training never gets to the trainer, in a job and in its numbers", async () => {
  bench = trainingBench({ maxTrainedLength: 11 });
  const group = scored(["a1 <e>", 1], ["a2 a3 <e>", 1], ["a3 <e>", 0]);
  const job = await submit(bench, newModel(bench).id, [group]);
  const steps = (await ended(bench, job)).filter(({ type }) => type === "gradient_step");
  expect(steps).toHaveLength(2);
  for (const { data } of steps) expect(data).toMatchObject({ num_dropped_too_long: 1, num_sequences: 2 });
  const { trajectories, totals } = reportOf(job.id);
  expect(trajectories!.map(({ status }) => status)).toEqual(["trained", "too_long", "trained"]);
  expect(trajectories![1]!.tokens).toBe(toyIds("<s> user NL q1 <e> NL <s> assistant NL a2 a3 <e>").length);
  expect(totals.num_dropped_too_long).toBe(1);
});
