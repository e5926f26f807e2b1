// The demonstration's tasks, trained by both trainers from the same rollouts: every metric of every gradient step must
// agree, and every number that is kept for a token. Two servers with the bundled model, one for each trainer. FLYWHEEL_CURVE_STEPS sets the number of training jobs
// of each task. Needs a Python with torch and transformers, named by FLYWHEEL_TORCH_PYTHON.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { addition, type DemoTask, yesNoMaybe } from "../../src/cli/demo.command.ts";
import { FlywheelClient, type TrajectoryGroup } from "../../src/client/client.ts";
import { gatherGroups } from "../../src/client/rollouts.ts";
import { loadConfig } from "../../src/config/load.ts";
import { needing, TORCH } from "../support/needs.ts";
import { PYTHON } from "./torch-harness.ts";

const STEPS = Number(process.env.FLYWHEEL_CURVE_STEPS ?? 2);
/** Prompts of a step. The demonstration takes all of the task's; a bounded test takes a few. */
const PROMPTS = process.env.FLYWHEEL_CURVE_STEPS === undefined ? 4 : null;
/** For a job with each trainer, on a busy machine. */
const MINUTES = PROMPTS === null ? 10 : 2;
const TRAINERS = ["onnx", "torch"] as const;
const BOUND = 1e-3;
/** Between the log-probabilities of the embedded float32 sampler and those of either trainer, at a job's first step. */
const SAMPLER_BOUND = 1e-4;

const servers: StartedServer[] = [];
const clients: FlywheelClient[] = [];
const data = mkdtempSync(join(tmpdir(), "curve-"));

needing(TORCH).describe("the demonstration's tasks", { timeout: MINUTES * 60_000 * (STEPS + 2) }, () => {
  beforeAll(async () => {
    for (const trainer of TRAINERS) {
      const config = {
        ...loadConfig({ env: {} }),
        ...{
          port: 0,
          data: join(data, trainer),
          apiKey: ["key"],
          logLevel: "error" as const,
          dtype: "float32" as const,
        },
        ...{ trainer, trainerDtype: "float32" as const, trainerCommand: `"${PYTHON}" -m flywheel_trainer` },
      };
      const server = await startServer(config, loadModel, [createTraining]);
      servers.push(server);
      clients.push(new FlywheelClient({ baseUrl: server.url, apiKey: "key" }));
    }
  }, 120_000);
  afterAll(async () => {
    for (const server of servers) await server.close();
    rmSync(data, { recursive: true, force: true });
  });

  it.each([yesNoMaybe(1), addition(1)])("have the same curve with both trainers: $title", async (task) => {
    const [baseModel] = await clients[0]!.baseModels();
    const models = await Promise.all(
      clients.map((client) => client.register({ project: "curve", name: task.name, base_model: baseModel! })),
    );
    for (let step = 0; step < STEPS; step++) {
      const groups = await rollOut(clients[0]!, models[0]!.name, task, step);
      const jobs = [await train(0, models[0]!.id, task, groups), await train(1, models[1]!.id, task, groups)];
      const [onnx, torch] = jobs.map(({ metrics }) => metrics) as [Metrics[], Metrics[]];
      expectSameNumbers(...((await Promise.all(jobs.map(numbersPerToken))) as [TokenNumbers[], TokenNumbers[]]));
      expect(torch).toHaveLength(onnx.length);
      expect(onnx.length).toBeGreaterThan(0);
      // later, the second server's policy is only close to the one that sampled
      for (const [first] of step === 0 ? [onnx, torch] : []) {
        expect(first!.sampler_logprob_diff_max).toBeLessThanOrEqual(SAMPLER_BOUND);
      }
      let worst = { name: "", off: 0 };
      for (const [i, metrics] of torch.entries()) {
        expect(Object.keys(metrics).sort()).toEqual(Object.keys(onnx[i]!).sort());
        for (const [name, value] of Object.entries(metrics)) {
          const off = Math.abs(value - onnx[i]![name]!) / Math.max(1, Math.abs(onnx[i]![name]!));
          if (off > worst.off) worst = { name, off };
          expect(off, `job ${step}, gradient step ${i}, ${name}: ${value}, ${onnx[i]![name]}`).toBeLessThanOrEqual(
            BOUND,
          );
        }
      }
      if (PROMPTS === null) {
        const { reward, loss } = onnx[0]!;
        console.log(
          `${task.name} job ${step}: reward ${reward}, loss ${loss} and ${torch[0]!.loss}, worst ${worst.name} ${worst.off}`,
        );
      }
    }
  });
});

/** All attempts come from the policy of the first server. */
function rollOut(client: FlywheelClient, model: string, task: DemoTask, step: number): Promise<TrajectoryGroup[]> {
  return gatherGroups({
    scenarios: task.prompts(PROMPTS ?? task.batch.prompts),
    groupSize: 1,
    async rollout(prompt) {
      const messages = [{ role: "user", content: prompt }];
      const sampling = { temperature: 1, top_p: 1, max_tokens: task.maxTokens, n: task.batch.groupSize, seed: step };
      const reply = await client.chat({ model, messages, ...sampling });
      return reply.choices.map((choice) => ({
        messages_and_choices: [...messages, choice],
        reward: task.reward(prompt, choice.message.content ?? ""),
      }));
    },
  });
}

type Metrics = Record<string, number>;

interface TrainedJob {
  server: number;
  id: string;
  groups: TrajectoryGroup[];
  /** Of its gradient steps. */
  metrics: Metrics[];
}

async function train(
  server: number,
  modelId: string,
  { batch }: DemoTask,
  groups: TrajectoryGroup[],
): Promise<TrainedJob> {
  const metrics: Metrics[] = [];
  const { id } = await clients[server]!.train(modelId, groups, {
    config: { learning_rate: batch.learningRate, grad_accumulation_sequences: PROMPTS === null ? batch.accumulate : 8 },
    onEvent: ({ type, data }) => {
      if (type === "gradient_step") metrics.push(data as Metrics);
    },
  });
  return { server, id, groups, metrics };
}

interface TokenNumbers {
  sequences: { positions: number[]; values: Record<string, (number | null)[]> }[];
}

/** Of every trajectory of the job that was trained. */
async function numbersPerToken({ server, id, groups }: TrainedJob): Promise<TokenNumbers[]> {
  const found: TokenNumbers[] = [];
  for (const [g, { trajectories }] of groups.entries()) {
    for (const t of trajectories.keys()) {
      const path = `/v1/preview/training-jobs/${id}/groups/${g}/trajectories/${t}/tokens`;
      const reply = await fetch(`${servers[server]!.url}${path}`, { headers: { authorization: "Bearer key" } });
      if (reply.status === 200) found.push((await reply.json()) as TokenNumbers);
      // a try whose advantage is 0 was not trained
      else expect(await reply.text()).toContain("this trajectory was not trained");
    }
  }
  return found;
}

function expectSameNumbers(onnx: TokenNumbers[], torch: TokenNumbers[]): void {
  expect(onnx.length).toBeGreaterThan(0);
  const flat = (found: TokenNumbers[]) => found.flatMap(({ sequences }) => sequences);
  const [wanted, got] = [flat(onnx), flat(torch)];
  expect(got.map(({ positions }) => positions)).toEqual(wanted.map(({ positions }) => positions));
  for (const [s, { values }] of wanted.entries()) {
    for (const [name, list] of Object.entries(values)) {
      for (const [i, want] of list.entries()) {
        const value = got[s]!.values[name]![i]!;
        if (want === null) expect(value, name).toBeNull();
        else {
          const off = Math.abs(value - want) / Math.max(1, Math.abs(want));
          expect(off, `sequence ${s}, ${name}: ${value}, ${want}`).toBeLessThanOrEqual(BOUND);
        }
      }
    }
  }
}
