// `flywheel demo` (npm run demo): starts a server with the bundled model, trains two small policies by reinforcement
// learning, prints their rewards as they rise, and keeps serving them. It uses only the public client.

import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { FlywheelClient } from "../../client/client.ts";
import { loadConfig } from "../../config/load.ts";
import { bar, sparkline } from "../curve.ts";
import { readNumber } from "../server-target.ts";
import { drawChart } from "../svg-chart.ts";
import { type LoopResult, trainOn } from "./loop.ts";
import { addition, type DemoTask, yesNoMaybe } from "./tasks.ts";

interface DemoOptions {
  port: string;
  data?: string;
  seconds: string;
  svg?: string;
  stop?: boolean;
}

const SEED = 1;
const NEW_QUESTIONS = 24;

export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description(
      "Train two small policies on this machine and watch them learn. Takes under four minutes on two cores.",
    )
    .option("--port <PORT>", "port of the demo's server; 0 picks a free one", "0")
    .option("--data <DIR>", "folder that keeps the policies; by default they are deleted when the demo ends")
    .option("--seconds <N>", "time for each of the two tasks", "95")
    .option("--svg <FILE>", "also draw the curves as an SVG image")
    .option("--stop", "exit when training is done instead of serving the policies")
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
  // Set while there is a server to stop. Before that, and on a second signal, the process ends at once.
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
    // Always on loopback, even if the environment names another host or a socket.
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
  // The demo's client still retries its requests; only ending the process stops it.
  if (cutShort !== null) endBy(cutShort);
}

/** Ends the process as if it had no handler for the signal. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

async function demonstrate(url: string, apiKey: string, seconds: number, { svg, stop }: DemoOptions): Promise<null> {
  const client = new FlywheelClient({ baseUrl: url, apiKey });
  const [baseModel] = await client.baseModels();
  console.log(`${baseModel} is served at ${url} (token: ${apiKey})`);
  const results: { task: DemoTask; result: LoopResult }[] = [];
  for (const task of [yesNoMaybe(SEED), addition(SEED)]) {
    console.log(`\n${task.title}: mean reward of each step's rollouts`);
    const result = await train(client, baseModel!, task, seconds);
    results.push({ task, result });
    await show(client, task, baseModel!, result);
  }
  if (svg !== undefined) draw(svg, results);
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

/** Asks the base model and the policy the same new questions, greedily, and prints both scores. */
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

function draw(file: string, results: readonly { task: DemoTask; result: LoopResult }[]): void {
  const lines = results.map(({ task, result }) => ({ name: task.title, values: result.curve }));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, drawChart(lines, { x: "training step", y: "mean reward" }));
  console.log(`\ncurves drawn to ${file}`);
}

function announce(url: string, apiKey: string, results: readonly { result: LoopResult }[]): void {
  const names = results.map(({ result }) => result.modelName).join(" and ");
  console.log(`\n${names} are served until you press Ctrl-C. Try:`);
  console.log(
    `  flywheel chat --url ${url} --api-key ${apiKey} --model ${results[0]!.result.modelName} "Shall we go? Yes or no?"`,
  );
}
