// What is to know about a running server: what it tells itself, what its key may see of its training, and, if it runs on this
// machine, its process, its data folder and what doctor finds.

import { ApiError, type FlywheelClient } from "../../client/client.ts";
import type { Principal, ServerInfo, ServerStatus, TrainableModel, TrainingJob } from "../../client/types.ts";
import type { LocalKey } from "../../store/local-key.ts";
import { bytesBelow, freeBytes } from "../../system/files.ts";
import type { Finding } from "../doctor/finding.ts";
import { checkDisk, checkThreads } from "../doctor/resources.check.ts";
import { checkServer, type ServerPlace } from "../doctor/server.check.ts";

/** Under the names of `flywheel status --json`. */
export interface RunningServer {
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

export interface Training {
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
): Promise<RunningServer> {
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

export function mayTrain({ scopes }: Principal): boolean {
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

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}
