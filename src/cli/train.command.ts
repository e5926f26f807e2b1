// `flywheel train FILE.jsonl`: submits trajectory groups, one per line, as a training job. It shows progress and the loss
// live, and the number of trained trajectories at the end. Ctrl-C cancels the job.

import { createReadStream } from "node:fs";
import type { Command } from "commander";
import type { FlywheelClient } from "../client/client.ts";
import { isConnectionFault } from "../client/http.ts";
import type { TrainingConfig, TrainingEvent, TrainingJob, TrajectoryGroup } from "../client/types.ts";
import { OperatorError } from "../errors/faults.ts";
import { isJsonObject, linesOf } from "../json/json.ts";
import type { ServerAddress } from "../store/local-key.ts";
import { bar, sparkline } from "./draw.ts";
import { newestNamed } from "./policies.command.ts";
import { addTargetOptions, clientFor, readNumber, type TargetOptions, withClient } from "./servers.ts";

/** A job survives a restart of the server, so following it does too: for about 40 s. */
const FOLLOWING_RETRIES = 8;

interface TrainOptions extends TargetOptions {
  model: string;
  project?: string;
  baseModel?: string;
  learningRate?: string;
  config?: string;
  json?: boolean;
}

export function addTrainCommand(program: Command): void {
  const command = program
    .command("train")
    .description("Train a policy from scored trajectories.")
    .argument(
      "<FILE.jsonl>",
      'one group per line: {"trajectories":[{"messages_and_choices":[…],"reward":1}, …]}; - reads standard input',
    )
    .requiredOption("--model <NAME>", "policy to train; created if it does not exist")
    .option(
      "--project <NAME>",
      "project of the policy; default: that of an existing policy with this name, else `default`",
    )
    .option("--base-model <NAME>", "base model of a new policy; default: the server's model")
    .option("--learning-rate <RATE>", "learning rate")
    .option("--config <JSON>", "further fields of experimental_config, for example '{\"ppo\":true}'")
    .option("--json", "print events as JSON lines instead of a progress bar");
  addTargetOptions(command);
  command.action((file: string, options: TrainOptions) =>
    withClient(options, (client, target) => train(file, options, client, target)),
  );
}

async function train(
  file: string,
  options: TrainOptions,
  client: FlywheelClient,
  target: ServerAddress,
): Promise<void> {
  const config = readConfig(options);
  const groups = await readGroups(file);
  const base = options.baseModel ?? (await firstBaseModel(client));
  const project = options.project ?? (await newestNamed(client, options.model))?.project ?? "default";
  const model = await client.register({ project, name: options.model, base_model: base });
  const job = await client.submit(model.id, groups, { config });
  const stop = () =>
    void client.cancel(job.id).catch((error: Error) => console.error(`not cancelled: ${error.message}`));
  process.once("SIGINT", stop);
  try {
    const screen = options.json ? jsonScreen() : drawnScreen();
    const done = await followed(clientFor(target, FOLLOWING_RETRIES), job.id, screen);
    screen.end();
    if (options.json) console.log(JSON.stringify(done));
    else summarise(done, options.model);
    if (done.status !== "COMPLETED") process.exitCode = 1;
  } finally {
    process.off("SIGINT", stop);
  }
}

async function followed(client: FlywheelClient, jobId: string, screen: Screen): Promise<TrainingJob> {
  try {
    for await (const event of client.events(jobId)) screen.show(event);
    return await client.job(jobId);
  } catch (error) {
    if (!isConnectionFault(error)) throw error;
    screen.end();
    const message = `the server no longer answers; the job ${jobId} continues when it is back`;
    throw new OperatorError(message, { cause: error });
  }
}

function readConfig({ config, learningRate }: TrainOptions): TrainingConfig {
  let parsed: unknown = {};
  try {
    parsed = JSON.parse(config ?? "{}");
  } catch (error) {
    throw new OperatorError(`--config is not valid JSON: ${(error as Error).message}`);
  }
  if (!isJsonObject(parsed)) throw new OperatorError("--config expects a JSON object");
  const rate = readNumber(learningRate, "--learning-rate");
  if (rate !== undefined && rate < 0) throw new OperatorError(`--learning-rate must not be negative (got ${rate})`);
  return { ...parsed, ...(rate === undefined ? {} : { learning_rate: rate }) };
}

async function readGroups(file: string): Promise<TrajectoryGroup[]> {
  const input = file === "-" ? process.stdin.setEncoding("utf8") : createReadStream(file, { encoding: "utf8" });
  const groups: TrajectoryGroup[] = [];
  let number = 0;
  try {
    for await (const line of linesOf(input)) {
      number++;
      if (line.trim() !== "") groups.push(JSON.parse(line) as TrajectoryGroup);
    }
  } catch (error) {
    const where = error instanceof SyntaxError ? `${file}, line ${number}: not valid JSON` : `cannot read ${file}`;
    throw new OperatorError(`${where} (${(error as Error).message})`, { cause: error });
  }
  if (groups.length === 0) throw new OperatorError(`${file} has no groups`);
  return groups;
}

async function firstBaseModel(client: FlywheelClient): Promise<string> {
  const [name] = await client.baseModels();
  if (name === undefined) throw new OperatorError("the server has no trainable model");
  return name;
}

interface Screen {
  show(event: TrainingEvent): void;
  end(): void;
}

function jsonScreen(): Screen {
  return { show: (event) => console.log(JSON.stringify(event)), end: () => {} };
}

/** On a terminal, one line that is redrawn. Elsewhere, one line per tenth of the job. */
function drawnScreen(): Screen {
  const { stdout } = process;
  const losses: number[] = [];
  let total = 0;
  let tenth = -1;
  return {
    show({ type, data }) {
      if (type === "training_started") total = data.num_sequences!;
      if (type === "training_warning") stdout.write(`${stdout.isTTY ? "\n" : ""}warning: ${data.message}\n`);
      if (type !== "gradient_step") return;
      losses.push(data.loss!);
      const share = losses.length / Math.max(1, total);
      const numbers = `loss ${data.loss!.toFixed(4)}  grad ${data.grad_norm!.toFixed(3)}`;
      const line = `${bar(share, 24)} ${losses.length}/${total}  ${numbers}  ${sparkline(losses, 24)}`;
      if (stdout.isTTY) stdout.write(`\r\u001b[2K${line}`);
      else if (Math.floor(share * 10) > tenth) {
        tenth = Math.floor(share * 10);
        stdout.write(`${line}\n`);
      }
    },
    end() {
      if (stdout.isTTY && losses.length > 0) stdout.write("\n");
    },
  };
}

function summarise(job: TrainingJob, name: string): void {
  if (job.status !== "COMPLETED") {
    console.log(`${job.status.toLowerCase()}: ${job.error_message}`);
    return;
  }
  const verdicts = new Map<string, number>();
  for (const { status } of job.report?.trajectories ?? []) verdicts.set(status, (verdicts.get(status) ?? 0) + 1);
  const counts = [...verdicts].map(([status, count]) => `${count} ${status}`).join(", ");
  const usage = job.report?.usage;
  const cost = usage ? `; ${usage.tokens} tokens in ${usage.seconds.toFixed(1)} s` : "";
  console.log(`${name} is at step ${job.step} (${counts || "nothing to train"}${cost})`);
}
