import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, it, vi } from "vitest";
import { generateRequest } from "../../../test/support/requests.ts";
import type { EngineOutput } from "../../engine/contract.ts";
import type { ServiceError } from "../../errors/service-error.ts";
import type { Principal } from "../http/auth.ts";
import type { Service } from "../service.ts";
import type { ChoiceDelta, ChoiceOutput } from "./choice-output.ts";
import { RunningGeneration } from "./generation.ts";
import { LiveRequest } from "./live-requests.ts";
import { LogprobMemory } from "./logprob-memory.ts";

const ROOM = 10_000_000;

/** A run of one choice whose tokens have long texts, and the memory for what is said of them. */
function longTokens() {
  const abort = vi.fn();
  const outputs = (async function* (): AsyncGenerator<EngineOutput> {
    for (;;) yield { type: "tokens", index: 0, tokens: [{ id: 5, logprobs: null }], finish: null };
  })();
  const service = {
    engine: { generate: () => Object.assign(outputs, { abort, stop: () => {} }) },
    cutSignal: new AbortController().signal,
    models: { baseName: "m" },
    metrics: { requestEnded: vi.fn(), interTokenLatency: () => {} },
    live: { firstToken: () => {} },
  };
  const token = "x".repeat(100_000);
  const entry = { token, logprob: -1, bytes: [...Buffer.from(token)], top_logprobs: [] };
  const delta = { type: "delta", index: 0, parts: [], tokenIds: [5], logprobs: [entry], end: null, stopEngine: false };
  const choice = { accept: () => delta as unknown as ChoiceDelta, end: null, tokens: 0 };
  const memory = new LogprobMemory({ all: ROOM, each: ROOM });
  const response = Object.assign(new EventEmitter(), { closed: false }) as unknown as ServerResponse;
  const run = new RunningGeneration(service as unknown as Service, {
    request: generateRequest([5]),
    choices: [choice as unknown as ChoiceOutput],
    arrivedAt: 0,
    clientGone: new AbortController().signal,
    live: new LiveRequest("id", { id: "me" } as Principal),
    held: memory.hold("me", 1, response),
  });
  return { run, memory, abort, metrics: service.metrics };
}

it("ends a reply whose log-probabilities turn out larger than there is room for, and the engine's work with it", async () => {
  const { run, memory, abort, metrics } = longTokens();
  let seen = 0;
  const read = async () => {
    for await (const _ of run.outputs()) if (++seen > 1000) break;
  };
  await expect(read()).rejects.toMatchObject({ code: "logprobs_full", retryAfter: 1 } satisfies Partial<ServiceError>);
  expect(seen).toBeGreaterThan(10);
  expect(memory.taken).toBeLessThanOrEqual(ROOM);
  expect(memory.taken).toBeGreaterThan(ROOM / 2);
  expect(abort).toHaveBeenCalled();
  expect(metrics.requestEnded).toHaveBeenCalledTimes(1);
});
