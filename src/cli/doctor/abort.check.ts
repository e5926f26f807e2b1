// Closes a long stream after its first token. The replica must stop working on it, or clients that leave would keep it busy.

import { setTimeout as sleep } from "node:timers/promises";
import type { Bench } from "./bench.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import type { Replica } from "./replica.ts";

const PATIENCE_MS = 5000;
const POLL_MS = 100;

export async function* checkAbort(
  { replica, served, prompt }: Bench,
  patienceMs = PATIENCE_MS,
): AsyncGenerator<Finding> {
  const before = await running(replica);
  if (before === null) {
    const advice = "Flywheel balances replicas by this metric. Serve /metrics beside the API.";
    yield warning("abort", "/metrics has no vllm:num_requests_running", advice);
    return;
  }
  const max = Math.max(1, served.maxModelLen - prompt.length - 1);
  for await (const _ of replica.stream(served.name, prompt, { max_tokens: max })) break;
  const start = performance.now();
  while (performance.now() - start < patienceMs) {
    if ((await running(replica))! <= before) {
      yield ok("abort", "a closed connection ends its request");
      return;
    }
    await sleep(POLL_MS);
  }
  const detail = `${patienceMs / 1000} s after the connection was closed, the request still runs`;
  yield wrong("abort", detail, "Remove proxies between Flywheel and the replica that keep connections open.");
}

/** Requests that run now, over all engines of the replica. null when it does not tell. */
async function running(replica: Replica): Promise<number | null> {
  const { body } = await replica.get("/metrics");
  const lines = typeof body === "string" ? [...body.matchAll(/^vllm:num_requests_running(?:\{.*\})? (\S+)$/gm)] : [];
  return lines.length === 0 ? null : lines.reduce((sum, [, value]) => sum + Number(value), 0);
}
