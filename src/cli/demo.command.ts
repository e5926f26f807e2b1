// `flywheel demo` (npm run demo): starts a server with the bundled model, trains two small policies by reinforcement
// learning, prints their rewards as they rise, and keeps serving them. It uses only the public client.

import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { FlywheelClient } from "../client/client.ts";
import { gatherGroups } from "../client/rollouts.ts";
import type { TrajectoryGroup } from "../client/types.ts";
import { loadConfig } from "../config/load.ts";
import { seededRandom } from "../training/random.ts";
import { bar, drawChart, sparkline } from "./draw.ts";
import { readNumber, startHere } from "./servers.ts";

// The two tasks of the demo: endless prompts and a reward for every reply. The bundled model masters neither at first and
// learns both in a minute or two.

export interface DemoTask {
  name: string;
  title: string;
  /** Draws the prompts of one step. */
  prompts(count: number): string[];
  /** Between 0 and 1. */
  reward(prompt: string, reply: string): number;
  maxTokens: number;
  /** Size of a step (prompts, attempts per prompt) and its training settings. */
  batch: { prompts: number; groupSize: number; learningRate: number; accumulate: number };
}

/** Answer yes, no or maybe. "Maybe" earns most, and the prompt does not say so: the model finds out by trying. */
export function yesNoMaybe(seed: number): DemoTask {
  const random = seededRandom(seed);
  const worth: Record<string, number> = { yes: 0.5, no: 0.75, maybe: 1 };
  const words = ["yes, no or maybe", "yes or no", "no or yes", "maybe, yes or no"];
  const asks = [
    ...["Is it a good idea? $w?", "Do you like it? $w?", "Shall we go? $w?", "Is he tall? $w?", "Can it fly? $w?"],
    ...["Is the soup hot? $w?", "Are you sure? $w?", "Is the bread fresh? Choose $w.", "Has the train left? $w?"],
    ...["Will they come? $w?", "Is the box empty? Reply $w.", "Was it fun? $w?"],
  ];
  return {
    name: "maybe",
    title: "yes, no or maybe",
    maxTokens: 8,
    batch: { prompts: 12, groupSize: 8, learningRate: 4e-4, accumulate: 48 },
    // Every step asks each question once and each word list equally often, so steps are comparable.
    prompts(count) {
      const first = Math.floor(random() * words.length);
      return Array.from({ length: count }, (_, i) => {
        const turn = first + i + Math.floor(i / asks.length);
        return asks[i % asks.length]!.replace("$w", words[turn % words.length]!);
      });
    },
    reward: (_prompt, reply) => worth[reply.trim().toLowerCase().replace(/[.!]$/, "")] ?? 0,
  };
}

/** Three-digit addition: 1 for the right sum, otherwise part of 0.4 for each correct digit. */
export function addition(seed: number): DemoTask {
  const random = seededRandom(seed);
  const number = () => 100 + Math.floor(random() * 900);
  /** A sum with the given number of carries, which decide how hard it is. */
  const sum = (wanted: number): string => {
    for (;;) {
      const [a, b] = [number(), number()];
      if (carries(a, b) === wanted) return `What is ${a} + ${b}?`;
    }
  };
  return {
    name: "adder",
    title: "three-digit addition",
    maxTokens: 12,
    batch: { prompts: 32, groupSize: 8, learningRate: 5e-4, accumulate: 64 },
    // Every step has the same mix of difficulties, so steps are comparable.
    prompts: (count) => Array.from({ length: count }, (_, i) => sum(i % 4)),
    reward(prompt, reply) {
      const [a, b] = prompt.match(/\d+/g)!.map(Number) as [number, number];
      const [right, said] = [String(a + b), reply.trim()];
      if (said === right) return 1;
      if (said.length !== right.length || !/^\d+$/.test(said)) return 0;
      return (0.4 * [...right].filter((digit, i) => said[i] === digit).length) / right.length;
    },
  };
}

function carries(a: number, b: number): number {
  return [10, 100, 1000].filter((place) => (a % place) + (b % place) >= place).length;
}

// The reinforcement-learning loop as a client writes it: roll out groups with the newest policy, score them, train, repeat.
// examples/07-train.mjs shows the same loop against your own server.

interface LoopResult {
  /** Mean reward of each step's rollouts, before training on them. */
  curve: number[];
  modelName: string;
}

async function train(client: FlywheelClient, baseModel: string, task: DemoTask, seconds: number): Promise<LoopResult> {
  const model = await client.register({ project: "demo", name: task.name, base_model: baseModel });
  const config = { learning_rate: task.batch.learningRate, grad_accumulation_sequences: task.batch.accumulate };
  const curve: number[] = [];
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  for (let step = 0; step < MOST_STEPS && elapsed() < seconds; step++) {
    const groups = await rollOut(client, task, model.name);
    const reward = meanReward(groups);
    curve.push(reward);
    const drawn = `${bar(reward, 30)} ${reward.toFixed(2)}  ${sparkline(curve, 24)}`;
    console.log(`  step ${String(step).padStart(2)}  ${drawn}  ${Math.round(elapsed())} s`);
    await client.train(model.id, groups, { config });
  }
  return { curve, modelName: model.name };
}

/** One request makes all attempts at a prompt, so the prompt is computed once. */
function rollOut(client: FlywheelClient, task: DemoTask, model: string): Promise<TrajectoryGroup[]> {
  return gatherGroups({
    scenarios: task.prompts(task.batch.prompts),
    groupSize: 1,
    concurrency: 32,
    async rollout(prompt) {
      const messages = [{ role: "user", content: prompt }];
      const sampling = { temperature: 1, top_p: 1, max_tokens: task.maxTokens, n: task.batch.groupSize };
      const reply = await client.chat({ model, messages, ...sampling });
      return reply.choices.map((choice) => ({
        messages_and_choices: [...messages, choice],
        reward: task.reward(prompt, choice.message.content ?? ""),
      }));
    },
  });
}

function meanReward(groups: readonly TrajectoryGroup[]): number {
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map(({ reward }) => reward));
  return rewards.reduce((sum, reward) => sum + reward, 0) / Math.max(1, rewards.length);
}

interface DemoOptions {
  port: string;
  data?: string;
  seconds: string;
  svg?: string;
  stop?: boolean;
}

const SEED = 1;
const NEW_QUESTIONS = 24;
const MOST_STEPS = 30;

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
    const config = { ...loadConfig({ flags, env: process.env }), uds: null, training: true };
    const server = await startHere(config);
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
