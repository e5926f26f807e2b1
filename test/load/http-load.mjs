// Measures what the HTTP side of a server costs: many streams for a while against a server that it starts.
//   node test/load/http-load.mjs --model DIR [--streams 256] [--seconds 60] [--max-tokens 64] [-- FLAGS OF SERVE]
// Prints JSON: streams completed, errors, tokens per second, the server's event-loop delay (p50, p99, max; from its own
// /metrics) and how its CPU time divides between the HTTP thread and everything else (Linux only). This is a benchmark:
// it asserts nothing, but exits with 1 when a stream failed.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const split = process.argv.indexOf("--", 2);
const own = split < 0 ? process.argv.slice(2) : process.argv.slice(2, split);
const serveFlags = split < 0 ? [] : process.argv.slice(split + 1);
const { values } = parseArgs({
  args: own,
  options: {
    model: { type: "string", default: "bundled" },
    streams: { type: "string", default: "256" },
    seconds: { type: "string", default: "60" },
    "max-tokens": { type: "string", default: "64" },
  },
});
const streams = Number(values.streams);
const seconds = Number(values.seconds);
const KEY = "load-test";
/** Warm-up: costs mean nothing until the code is compiled. */
const WARM_MS = 8000;

const server = await startServer();
try {
  const agent = new Agent({ keepAlive: true, maxSockets: streams });
  const warm = { completed: 0, errors: 0, tokens: 0, firstError: null };
  await Promise.all(Array.from({ length: streams }, () => client(agent, performance.now() + WARM_MS, warm)));
  await (await fetch(`${server.url}/metrics`)).text(); // starts a new measurement of the event loop
  const before = cpuOf(server.pid);
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const totals = { completed: 0, errors: 0, tokens: 0, firstError: null };
  await Promise.all(Array.from({ length: streams }, () => client(agent, until, totals)));
  const wall = (performance.now() - startedAt) / 1000;
  const after = cpuOf(server.pid);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const http = after.main - before.main;
  const rest = after.rest - before.rest;
  const report = {
    model: values.model,
    streams,
    seconds: round(wall),
    ...totals,
    tokensPerSecond: round(totals.tokens / wall),
    eventLoopDelayMs: Object.fromEntries(["p50", "p99", "max"].map((q) => [q, lag(metrics, q)])),
    cpuSeconds: { httpThread: round(http), everythingElse: round(rest) },
    httpShareOfEnginePercent: round((100 * http) / rest),
    httpMicrosecondsPerToken: round((1e6 * http) / totals.tokens),
  };
  console.log(JSON.stringify(report, null, 2));
  process.exitCode = totals.errors > 0 ? 1 : 0;
  agent.destroy();
} finally {
  server.child.kill("SIGTERM");
}

async function client(agent, until, totals) {
  while (performance.now() < until) {
    try {
      const tokens = await stream(agent);
      totals.tokens += tokens;
      totals.completed++;
    } catch (error) {
      totals.errors++;
      totals.firstError ??= String(error);
    }
  }
}

/** Reads one streamed request to [DONE]. Resolves to its number of tokens. */
function stream(agent) {
  const body = JSON.stringify({
    messages: [{ role: "user", content: "Tell me something about the sea, at some length." }],
    max_tokens: Number(values["max-tokens"]),
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  });
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const sent = request(`${server.url}/v1/chat/completions`, { method: "POST", agent, headers }, (response) => {
      let tail = "";
      response.setEncoding("utf8");
      response.on("data", (text) => {
        tail = (tail + text).slice(-2000);
      });
      response.on("end", () => {
        const tokens = /"completion_tokens":(\d+)/.exec(tail)?.[1];
        const complete = response.statusCode === 200 && tail.endsWith("data: [DONE]\n\n") && tokens !== undefined;
        complete ? resolve(Number(tokens)) : reject(new Error(`status ${response.statusCode}: ${tail.slice(-300)}`));
      });
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function startServer() {
  const bin = fileURLToPath(new URL("../../bin/flywheel", import.meta.url));
  const data = mkdtempSync(join(tmpdir(), "flywheel-load-"));
  const args = [bin, "serve", "--model", values.model, "--port", "0", "--data", data, "--api-key", KEY, ...serveFlags];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let out = "";
    child.on("exit", (code) => {
      rmSync(data, { recursive: true, force: true });
      reject(new Error(`the server ended with ${code}`));
    });
    child.stdout.on("data", (bytes) => {
      out += bytes;
      const url = /listening on (\S+)/.exec(out)?.[1];
      if (url !== undefined) {
        resolve({ child, pid: child.pid, url });
      }
    });
  });
}

/** CPU seconds of the process's first thread (HTTP) and of all others. */
function cpuOf(pid) {
  const ticks = (thread) => {
    const fields = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  };
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const main = ticks(pid);
    return { main, rest: threads.reduce((sum, thread) => sum + ticks(thread), 0) - main };
  } catch {
    return { main: Number.NaN, rest: Number.NaN };
  }
}

/** The server samples with a timer of 10 ms, and that period is part of the delay it reports. */
function lag(metrics, quantile) {
  const match = new RegExp(`^nodejs_eventloop_lag_${quantile}_seconds (\\S+)$`, "m").exec(metrics);
  return match === null ? null : round(Math.max(0, Number(match[1]) * 1000 - 10));
}

function round(value) {
  return Math.round(value * 100) / 100;
}
