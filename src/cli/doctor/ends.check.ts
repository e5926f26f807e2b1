// Whether generations end when they should.

import { setTimeout as sleep } from "node:timers/promises";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import type { Bench, Completion, Replica } from "./replica.ts";

// When a reply ends. Flywheel sends ignore_eos and puts every id that ends a reply into stop_token_ids, so those must work
// and nothing else may end it.

const UPDATE = "Update vLLM, and remove plugins or logits processors that change how generation ends.";

export async function* checkStops(bench: Bench): AsyncGenerator<Finding> {
  yield await length(bench);
  yield* stopIds(bench);
  yield* endOfSequence(bench);
}

async function length(bench: Bench): Promise<Finding> {
  const reply = await bench.greedy();
  const isRight = reply.finishReason === "length" && reply.stopReason === null && reply.tokenIds.length === 16;
  if (isRight) return ok("length", "max_tokens ends a reply with length");
  return wrong("length", `max_tokens 16 gives ${told(reply)}`, UPDATE);
}

async function* stopIds(bench: Bench): AsyncGenerator<Finding> {
  const { tokenIds } = await bench.greedy();
  const at = lateFirst(tokenIds);
  const id = tokenIds[at]!;
  const stopped = await bench.complete({ stop_token_ids: [id] });
  const isRight = stopped.finishReason === "stop" && stopped.stopReason === id && stopped.tokenIds.length === at + 1;
  yield isRight
    ? ok("stop-ids", "stop_token_ids end a reply, and stop_reason names the id")
    : wrong("stop-ids", `stop id ${id} as token ${at + 1} gives ${told(stopped)}`, UPDATE);
  const minimum = at + 3;
  const longer = await bench.complete({ stop_token_ids: [id], min_tokens: minimum });
  const isMasked = longer.tokenIds.length >= minimum && !longer.tokenIds.slice(0, minimum).includes(id);
  yield isMasked
    ? ok("min-tokens", "min_tokens keeps stop ids away")
    : wrong("min-tokens", `min_tokens ${minimum} with stop id ${id} gives ${told(longer)}`, UPDATE);
}

/** Forces the end-of-sequence token by a bias. */
async function* endOfSequence(bench: Bench): AsyncGenerator<Finding> {
  const id = bench.ours.eosTokenIds[0] ?? bench.ours.text.tokenizer.eosTokenId;
  if (id === null) return;
  const forced = { logit_bias: { [id]: 100 }, max_tokens: 4 };
  const ignored = await bench.complete(forced);
  yield ignored.finishReason === "length" && ignored.tokenIds.every((token) => token === id)
    ? ok("ignore-eos", "ignore_eos goes on after the end-of-sequence token")
    : wrong("ignore-eos", `with ignore_eos, token ${id} gives ${told(ignored)}`, UPDATE);
  const ended = await bench.complete({ ...forced, stop_token_ids: [id] });
  yield ended.finishReason === "stop" && ended.stopReason === id && ended.tokenIds.length === 1
    ? ok("eos-stop", "the end-of-sequence token as a stop id ends a reply")
    : wrong("eos-stop", `token ${id} as a stop id gives ${told(ended)}`, UPDATE);
}

/** The latest of the first eight places whose token did not come before. */
function lateFirst(tokenIds: readonly number[]): number {
  const firsts = tokenIds.slice(0, 8).map((id, i) => (tokenIds.indexOf(id) === i ? i : 0));
  return Math.max(0, ...firsts);
}

function told({ finishReason, stopReason, tokenIds }: Completion): string {
  return `${finishReason} (stop_reason ${JSON.stringify(stopReason)}) after ${tokenIds.length} tokens`;
}

// Closes a long stream after its first token. The replica must stop working on it, or clients that leave would keep it busy.

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
