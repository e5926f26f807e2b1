// What flywheel status says of a server.
import { ApiError, type FlywheelClient } from "../../client/client.ts";
import type { Principal, ServerInfo, ServerStatus, TrainableModel, TrainingJob } from "../../client/types.ts";
import type { LocalKey } from "../../store/local-key.ts";
import { bytesBelow, freeBytes } from "../../system/files.ts";
import { bytesText, countText } from "../../system/text.ts";
import { type Finding, findingLines } from "../doctor/finding.ts";
import { checkDisk, checkThreads } from "../doctor/machine.check.ts";
import { checkServer, type ServerPlace } from "../doctor/server.check.ts";
import { tableLines } from "../draw.ts";
import { all } from "../servers.ts";

// What is to know about a running server: what it tells itself, what its key may see of its training, and, if it runs on this
// machine, its process, its data folder and what doctor finds.

/** Under the names of `flywheel status --json`. */
export interface ServerReport {
  url: string;
  server: ServerInfo;
  key: Principal;
  /** null = it runs elsewhere. */
  machine: ServerMachine | null;
  /** null = it does not train, or the key may not see that. */
  training: Training | null;
}

export interface ServerMachine {
  /** null = started by an earlier version. */
  pid: number | null;
  data: { folder: string; bytes: number; free_bytes: number };
  checks: Finding[];
}

interface Training {
  policies: TrainableModel[];
  running_jobs: TrainingJob[];
  waiting_jobs: TrainingJob[];
  /** On the same database. */
  servers: ServerStatus[];
}

/** `place`: where the server runs; null = elsewhere. */
export async function askServer(
  client: FlywheelClient,
  url: string,
  place: (ServerPlace & { key: LocalKey }) | null,
): Promise<ServerReport> {
  const [server, key] = await Promise.all([client.server(), client.me()]);
  const [machine, training] = await Promise.all([
    place === null ? null : machineOf(place, server),
    mayTrain(key) ? trainingOf(client) : null,
  ]);
  return { url, server, key, machine, training };
}

async function machineOf(place: ServerPlace & { key: LocalKey }, { threads }: ServerInfo): Promise<ServerMachine> {
  const checks: Finding[] = [];
  for await (const finding of checkServer(place)) checks.push(finding);
  checks.push(checkDisk("disk-data", place.data, "trained steps"));
  if (threads !== null) checks.push(checkThreads(threads));
  const data = { folder: place.data, bytes: bytesBelow(place.data), free_bytes: freeBytes(place.data) };
  return { pid: place.key.pid, data, checks };
}

function mayTrain({ scopes }: Principal): boolean {
  return scopes.includes("training") || scopes.includes("admin");
}

async function trainingOf(client: FlywheelClient): Promise<Training | null> {
  try {
    const [servers, policies, running, waiting] = await Promise.all([
      client.servers(),
      all(client.models()),
      all(client.jobs("RUNNING")),
      all(client.jobs("PENDING")),
    ]);
    return { policies, running_jobs: running, waiting_jobs: waiting, servers };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null; // --no-training has no such routes
    throw error;
  }
}

// The page of `flywheel status`: a line for each thing to know, what to change, and a table of the servers if there are several.

/** Policies and jobs to name; more are counted. */
const NAMED = 5;

export function statusLines(running: ServerReport, now: Date): string[] {
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

function modelText({ server: { model, dtype } }: ServerReport): string {
  const size = model.parameters === null ? "" : `, ${countText(model.parameters)} parameters`;
  return `${model.id}${size}${dtype === null ? "" : `, ${dtype}`}`;
}

function trainingFacts({ key, training }: ServerReport): [string, string][] {
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
