// `flywheel status`: the servers on the same store as the one that answers, with their roles, versions, running jobs and
// engines. Fails when nothing answers.

import type { Command } from "commander";
import type { ServerStatus } from "../client/types.ts";
import { addTargetOptions, type TargetOptions, withServer } from "./server-target.ts";
import { printTable } from "./table.ts";

interface StatusOptions extends TargetOptions {
  json?: boolean;
}

export function addStatusCommand(program: Command): void {
  const command = program
    .command("status")
    .description("Show the servers of a deployment: roles, versions, running jobs and engines.")
    .option("--json", "print JSON");
  addTargetOptions(command);
  command.action((options: StatusOptions) =>
    withServer(options, async (client) => {
      const servers = await client.servers();
      if (options.json) console.log(JSON.stringify(servers));
      else show(servers);
    }),
  );
}

function show(servers: readonly ServerStatus[]): void {
  const rows = servers.map((server) => [
    server.role,
    server.address,
    server.version,
    server.alive ? "up" : `silent for ${Math.round(server.silent_seconds)} s`,
    server.models.join(", "),
    enginesOf(server),
    server.running_jobs.map(jobText).join(", ") || "-",
  ]);
  printTable([["role", "address", "version", "state", "model", "engines", "running jobs"], ...rows]);
  const versions = new Set(servers.map(({ version }) => version));
  if (versions.size > 1) console.log(`several versions run at once: ${[...versions].sort().join(", ")}`);
}

function enginesOf({ replicas }: ServerStatus): string {
  if (replicas.length === 0) return "-";
  return replicas.map(({ name, state, in_flight }) => `${name} ${state} (${in_flight} running)`).join(", ");
}

function jobText({ id, kind, progress }: ServerStatus["running_jobs"][number]): string {
  return `${kind} ${id}${progress === null ? "" : ` ${Math.round(progress * 100)}%`}`;
}
