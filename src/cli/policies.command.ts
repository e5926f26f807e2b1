// `flywheel policies` lists the policies on a server with their newest steps. `flywheel policies NAME` lists one policy's
// steps. Its former name, `models`, still works; base models are `flywheel list`.

import type { Command } from "commander";
import type { FlywheelClient } from "../client/client.ts";
import type { TrainableModel } from "../client/types.ts";
import { OperatorError } from "../errors/faults.ts";
import { printTable } from "./draw.ts";
import { addTargetOptions, all, type TargetOptions, withClient } from "./servers.ts";

interface PoliciesOptions extends TargetOptions {
  json?: boolean;
}

/** The metrics to show, in this order, if any step has them. */
const SHOWN_METRICS = ["val/reward", "train/reward", "loss", "entropy", "kl_policy_ref", "grad_norm"];

export function addPoliciesCommand(program: Command): void {
  const command = program
    .command("policies")
    .alias("models")
    .description("List the policies on a server, or the steps of one.")
    .argument("[NAME]", "policy whose steps to list")
    .option("--json", "print JSON");
  addTargetOptions(command);
  command.action((name: string | undefined, options: PoliciesOptions) =>
    withClient(options, (client) =>
      name === undefined ? listPolicies(client, options) : listSteps(client, name, options),
    ),
  );
}

async function listPolicies(client: FlywheelClient, { json }: PoliciesOptions): Promise<void> {
  const rows = await all(client.models());
  if (json) {
    console.log(JSON.stringify(rows));
    return;
  }
  const cells = rows.map((row) => [
    row.name,
    String(row.latest_step),
    row.project,
    row.base_model,
    row.created_at.slice(0, 16),
  ]);
  printTable([["name", "step", "project", "base model", "created"], ...cells]);
}

async function listSteps(client: FlywheelClient, name: string, { json }: PoliciesOptions): Promise<void> {
  const model = await newestNamed(client, name);
  if (!model) throw new OperatorError(`there is no policy ${name}; \`flywheel policies\` lists them`);
  const steps = await all(client.checkpoints(model.id));
  if (json) {
    console.log(JSON.stringify(steps));
    return;
  }
  const shown = SHOWN_METRICS.filter((metric) => steps.some(({ metrics }) => metric in metrics));
  const cells = steps.map(({ step, created_at, metrics }) => [
    `${name}@${step}`,
    created_at.slice(0, 16),
    ...shown.map((metric) => metrics[metric]?.toFixed(4) ?? ""),
  ]);
  printTable([["policy", "created", ...shown], ...cells]);
}

/** The newest policy with this name, which is the one that answers to it. */
export async function newestNamed(client: FlywheelClient, name: string): Promise<TrainableModel | null> {
  let found: TrainableModel | null = null;
  for await (const model of client.models()) if (model.name === name) found = model;
  return found;
}
