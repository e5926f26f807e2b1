import { expect, it } from "vitest";
import type { ServerStatus, TrainableModel, TrainingJob } from "../../client/types.ts";
import { ok, warning } from "../doctor/finding.ts";
import { type ServerReport, statusLines } from "./report.ts";

const here: ServerStatus = {
  ...{ id: "s1", role: "all", version: "0.1.0", alive: true, silent_seconds: 1, address: "http://127.0.0.1:8000" },
  ...{ models: ["mini"], replicas: [], running_jobs: [] },
};

function server(changes: Partial<ServerReport> = {}): ServerReport {
  return {
    url: "http://127.0.0.1:8000",
    server: {
      ...{ version: "0.1.0", started_at: "2026-11-18T00:45:41.000Z", role: "all", dtype: "int8", threads: 2 },
      model: { id: "mini", context_length: 2048, parameters: 14_700_000 },
      requests: { running: 3, waiting: 1 },
    },
    key: {
      ...{ id: "t1", name: "local key", scopes: ["inference", "training", "admin"], expires_at: null, session: false },
      workspace: { id: "w1", name: "default" },
    },
    machine: {
      pid: 4242,
      data: { folder: "/home/ann/.flywheel", bytes: 1_300_000, free_bytes: 70_700_000_000 },
      checks: [ok("server", "answers")],
    },
    training: {
      policies: [1, 2, 3, 4, 5, 6].map((step) => ({ name: `p${step}`, latest_step: step }) as TrainableModel),
      running_jobs: [{ id: "j1", kind: "rl", progress: 0.4 } as TrainingJob],
      waiting_jobs: [],
      servers: [here],
    },
    ...changes,
  };
}

const NOW = new Date("2026-11-18T03:58:00Z");

it("shows a server on this machine", () => {
  expect(statusLines(server(), NOW)).toEqual([
    "server     http://127.0.0.1:8000, Flywheel 0.1.0, process 4242",
    "up since   2026-11-18 00:45 UTC (3 h 12 min)",
    "model      mini, 14.7 M parameters, int8",
    "context    2048 tokens",
    "threads    2",
    "requests   3 running, 1 waiting",
    "key        local key, for inference, training, admin",
    "workspace  default",
    "data       /home/ann/.flywheel: 1.3 MB, 70.7 GB free",
    "policies   6: p2@2, p3@3, p4@4, p5@5, p6@6, …",
    "jobs       1 running, 0 waiting: rl j1 40%",
  ]);
});

it("shows what to change, as doctor does", () => {
  const { machine } = server();
  const low = { ...machine!, checks: [warning("disk-data", "1.0 GB free", "Free some space.")] };
  expect(statusLines(server({ machine: low }), NOW).slice(-2)).toEqual([
    "  warning  disk-data            1.0 GB free",
    `${" ".repeat(32)}→ Free some space.`,
  ]);
});

it("shows what is known of a server elsewhere, to a key that may not train", () => {
  const { server: info, key } = server();
  const remote = { ...info, dtype: null, threads: null };
  const lines = statusLines(
    server({ server: remote, machine: null, training: null, key: { ...key, scopes: ["inference"] } }),
    NOW,
  );
  expect(lines.map((line) => line.slice(0, 10).trim())).toEqual([
    ...["server", "up since", "model", "context", "requests", "key", "workspace", "training"],
  ]);
  expect(lines[0]).not.toContain("process ");
  expect(lines.at(-1)).toBe("training   not shown: the key lacks the scope training");
  expect(statusLines(server({ training: null }), NOW).at(-1)).toBe("training   off");
});

it("lists several servers, and says when their versions differ", () => {
  const worker: ServerStatus = { ...here, role: "worker", version: "0.2.0", alive: false, silent_seconds: 41.2 };
  const { training } = server();
  const lines = statusLines(server({ training: { ...training!, servers: [here, worker] } }), NOW);
  expect(lines.slice(-4)).toEqual([
    "role    address                version  state            model  engines  running jobs",
    "all     http://127.0.0.1:8000  0.1.0    up               mini   -        -",
    "worker  http://127.0.0.1:8000  0.2.0    silent for 41 s  mini   -        -",
    "several versions run at once: 0.1.0, 0.2.0",
  ]);
});

it("says that nobody runs the jobs that wait", () => {
  const { training } = server();
  const api: ServerStatus = { ...here, role: "api" };
  const gone: ServerStatus = { ...here, role: "worker", alive: false };
  const waiting = [{ id: "j2", kind: "rl" } as TrainingJob];
  const jobsLine = (servers: ServerStatus[]) =>
    statusLines(server({ training: { ...training!, running_jobs: [], waiting_jobs: waiting, servers } }), NOW).find(
      (line) => line.startsWith("jobs"),
    );
  expect(jobsLine([api, gone])).toBe(
    "jobs       0 running, 1 waiting; no server runs jobs: start one with --role worker",
  );
  expect(jobsLine([api, here])).toBe("jobs       0 running, 1 waiting");
});
