// `flywheel demo` (npm run demo): starts a server on the bundled model, trains two small policies by reinforcement learning
// while you watch their rewards rise, and leaves them served. Everything it does goes through the public client.

import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { FlywheelClient } from "../../client/client.ts";
import { loadConfig } from "../../config/load.ts";
import { bar, sparkline } from "../curve.ts";
import { readNumber } from "../server-target.ts";
import { type LoopResult, trainOn } from "./loop.ts";
import { addition, type DemoTask, yesNoMaybe } from "./tasks.ts";

interface DemoOptions {
  port: string;
  data?: string;
  seconds: string;
  png?: string;
  stop?: boolean;
}

const SEED = 1;
const NEW_QUESTIONS = 24;

export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description("Train two small policies on this machine and watch them learn; under four minutes on two cores.")
    .option("--port <PORT>", "port of the demonstration's server; 0 picks a free one", "0")
    .option("--data <DIR>", "where the policies are kept; without it in a folder that goes with the demonstration")
    .option("--seconds <N>", "time for each of the two tasks", "95")
    .option("--png <FILE>", "also draw the curves into an image")
    .option("--stop", "end when the training has ended, instead of going on serving")
    .action(run);
}

async function run(options: DemoOptions): Promise<void> {
  const [{ startServer }, { loadModel }, { createTraining }] = await Promise.all([
    import("../../app/serve.ts"),
    import("../../app/load-model.ts"),
    import("../../app/training.ts"),
  ]);
  const seconds = readNumber(options.seconds, "--seconds")!;
  const data = options.data ?? mkdtempSync(join(tmpdir(), "flywheel-demo-"));
  const removeData = () => {
    if (options.data === undefined) rmSync(data, { recursive: true, force: true });
  };
  // Set while there is a server to stop. Before that, and the second time, a signal ends the process at once.
  let interrupt: ((signal: NodeJS.Signals) => void) | null = null;
  const onSignal = (signal: NodeJS.Signals) => {
    if (interrupt === null) {
      removeData();
      endBy(signal);
    }
    interrupt?.(signal);
    interrupt = null;
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, onSignal);
  let cutShort: NodeJS.Signals | null;
  try {
    const apiKey = randomBytes(16).toString("base64url");
    // On loopback, whatever the environment says.
    const flags = { host: "127.0.0.1", port: options.port, data, logLevel: "error", apiKey: [apiKey] };
    const config = { ...loadConfig({ flags, env: process.env }), uds: null };
    const server = await startServer(config, loadModel, [createTraining]);
    const interrupted = new Promise<NodeJS.Signals>((resolve) => {
      interrupt = resolve;
    });
    try {
      cutShort = await Promise.race([demonstrate(server.url, apiKey, seconds, options), interrupted]);
      if (cutShort === null && !options.stop) await interrupted;
    } finally {
      await server.close();
    }
  } finally {
    removeData();
  }
  // The demonstration's requests are still tried again.
  if (cutShort !== null) endBy(cutShort);
}

/** As if nobody had listened for the signal. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

async function demonstrate(url: string, apiKey: string, seconds: number, { png, stop }: DemoOptions): Promise<null> {
  const client = new FlywheelClient({ baseUrl: url, apiKey });
  const [baseModel] = await client.baseModels();
  console.log(`${baseModel} is served at ${url} (token: ${apiKey})`);
  const results: { task: DemoTask; result: LoopResult }[] = [];
  for (const task of [yesNoMaybe(SEED), addition(SEED)]) {
    console.log(`\n${task.title}: mean reward of every step's rollouts`);
    const result = await train(client, baseModel!, task, seconds);
    results.push({ task, result });
    await show(client, task, baseModel!, result);
  }
  if (png !== undefined) await draw(png, results);
  if (!stop) announce(url, apiKey, results);
  return null;
}

async function train(client: FlywheelClient, baseModel: string, task: DemoTask, seconds: number): Promise<LoopResult> {
  const seen: number[] = [];
  const start = performance.now();
  return trainOn({
    client,
    baseModel,
    task,
    steps: 30,
    deadline: start + seconds * 1000,
    onStep(step, reward) {
      seen.push(reward);
      const elapsed = `${Math.round((performance.now() - start) / 1000)} s`;
      console.log(
        `  step ${String(step).padStart(2)}  ${bar(reward, 30)} ${reward.toFixed(2)}  ${sparkline(seen, 24)}  ${elapsed}`,
      );
    },
  });
}

/** The same new questions to the model before and after, each answered with the most likely tokens. */
async function show(
  client: FlywheelClient,
  task: DemoTask,
  baseModel: string,
  { modelName }: LoopResult,
): Promise<void> {
  const prompts = task.prompts(NEW_QUESTIONS);
  for (const model of [baseModel, modelName]) {
    const replies = await Promise.all(
      prompts.map((prompt) => {
        const messages = [{ role: "user", content: prompt }];
        return client.chat({ model, messages, temperature: 0, max_tokens: task.maxTokens });
      }),
    );
    const said = replies.map(({ choices }) => choices[0]!.message.content ?? "");
    const mean = said.reduce((sum, reply, i) => sum + task.reward(prompts[i]!, reply), 0) / prompts.length;
    const name = replies[0]!.model.padEnd(14);
    console.log(`  ${name} ${mean.toFixed(2)} on ${prompts.length} new questions; "${prompts.at(-1)}" ${said.at(-1)}`);
  }
}

async function draw(file: string, results: readonly { task: DemoTask; result: LoopResult }[]): Promise<void> {
  const [{ drawChart }, { encodePng }] = await Promise.all([
    import("../../observe/chart.ts"),
    import("../../observe/png.ts"),
  ]);
  const lines = results.map(({ task, result }) => ({ name: task.title, values: result.curve }));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, encodePng(drawChart(lines, { x: "training step", y: "mean reward" })));
  console.log(`\ncurves drawn into ${file}`);
}

function announce(url: string, apiKey: string, results: readonly { result: LoopResult }[]): void {
  const names = results.map(({ result }) => result.modelName).join(" and ");
  console.log(`\n${names} stay served until Ctrl-C; try:`);
  console.log(
    `  flywheel chat --url ${url} --api-key ${apiKey} --model ${results[0]!.result.modelName} "Shall we go? Yes or no?"`,
  );
}
