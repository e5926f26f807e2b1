// The page of `flywheel status`: a line for each thing to know, what to change, and a table of the servers if there are several.

import type { ServerStatus, TrainableModel, TrainingJob } from "../../client/types.ts";
import { bytesText, countText } from "../../system/text.ts";
import { findingLines } from "../doctor/finding.ts";
import { tableLines } from "../table.ts";
import { mayTrain, type RunningServer, type Training } from "./running-server.ts";

/** Policies and jobs to name; more are counted. */
const NAMED = 5;

export function statusLines(running: RunningServer, now: Date): string[] {
  const { url, server, key, machine, training } = running;
  const { model, requests } = server;
  const process = machine?.pid ? `, process ${machine.pid}` : "";
  const facts: [string, string | null][] = [
    ["server", `${url}, Flywheel ${server.version}${process}`],
    ["up since", `${moment(server.started_at)} (${duration(now.getTime() - Date.parse(server.started_at))})`],
    ["model", modelText(running)],
    ["context", `${model.context_length} tokens`],
    ["threads", server.threads === null ? null : String(server.threads)],
    ["requests", `${requests.running} running, ${requests.waiting} waiting`],
    ["key", `${key.name}, for ${key.scopes.join(", ")}`],
    ["workspace", key.workspace.name],
    [
      "data",
      machine && `${machine.data.folder}: ${bytesText(machine.data.bytes)}, ${bytesText(machine.data.free_bytes)} free`,
    ],
    ...trainingFacts(running),
  ];
  const lines = facts.flatMap(([name, text]) => (text === null ? [] : [`${name.padEnd(10)} ${text}`]));
  const findings = (machine?.checks ?? []).filter(({ status }) => status !== "ok");
  return [...lines, ...findings.flatMap(findingLines), ...serverLines(training?.servers ?? [])];
}

function modelText({ server: { model, dtype } }: RunningServer): string {
  const size = model.parameters === null ? "" : `, ${countText(model.parameters)} parameters`;
  return `${model.id}${size}${dtype === null ? "" : `, ${dtype}`}`;
}

function trainingFacts({ key, training }: RunningServer): [string, string][] {
  const hidden = mayTrain(key) ? "off" : "not shown: the key lacks the scope training";
  if (training === null) return [["training", hidden]];
  return [
    ["policies", policiesText(training)],
    ["jobs", jobsText(training)],
  ];
}

function policiesText({ policies }: Training): string {
  const newest = policies.slice(-NAMED).map(({ name, latest_step }: TrainableModel) => `${name}@${latest_step ?? 0}`);
  return named(String(policies.length), newest, policies.length);
}

function jobsText({ running_jobs, waiting_jobs, servers }: Training): string {
  const counts = `${running_jobs.length} running, ${waiting_jobs.length} waiting`;
  const runs = servers.some(({ role, alive }) => alive && role !== "api");
  if (!runs) return `${counts}; no server runs jobs: start one with --role worker`;
  const shown = running_jobs.slice(0, NAMED).map(jobText);
  return named(counts, shown, running_jobs.length);
}

function named(count: string, names: readonly string[], total: number): string {
  if (names.length === 0) return count;
  return `${count}: ${names.join(", ")}${total > names.length ? ", …" : ""}`;
}

function jobText({ id, kind, progress }: Pick<TrainingJob, "id" | "progress"> & { kind: string }): string {
  return `${kind} ${id}${progress === null ? "" : ` ${Math.round(progress * 100)}%`}`;
}

/** Nothing for a single server whose engine is its own: the page is about it. */
function serverLines(servers: readonly ServerStatus[]): string[] {
  if (servers.length < 2 && servers.every(({ replicas }) => replicas.length === 0)) return [];
  const rows = servers.map((server) => [
    server.role,
    server.address,
    server.version,
    server.alive ? "up" : `silent for ${Math.round(server.silent_seconds)} s`,
    server.models.join(", "),
    enginesOf(server),
    server.running_jobs.map(jobText).join(", ") || "-",
  ]);
  const table = tableLines([["role", "address", "version", "state", "model", "engines", "running jobs"], ...rows]);
  const versions = [...new Set(servers.map(({ version }) => version))].sort();
  return ["", ...table, ...(versions.length > 1 ? [`several versions run at once: ${versions.join(", ")}`] : [])];
}

function enginesOf({ replicas }: ServerStatus): string {
  if (replicas.length === 0) return "-";
  return replicas.map(({ name, state, in_flight }) => `${name} ${state} (${in_flight} running)`).join(", ");
}

/** 2026-11-18 00:45 UTC. */
function moment(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")} UTC`;
}

/** 42 s, 5 min, 3 h 12 min, 4 d 2 h. */
function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [minutes, hours, days] = [60, 3600, 86_400].map((unit) => Math.floor(seconds / unit)) as [
    number,
    number,
    number,
  ];
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return minutes > 0 ? `${minutes} min` : `${seconds} s`;
}
