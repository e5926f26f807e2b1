// Random schedules of deaths, returns and cancellations on a fleet. Whatever happens, a caller gets the tokens that the
// request would have got alone, none twice, none missing; every generation ends; nothing stays behind.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { EngineOutput, GenerateRequest, Generation } from "../../src/engine/contract.ts";
import { FakeReplica } from "../support/fake-replica.ts";
import { finishOf, generateRequest } from "../support/requests.ts";
import { outputsOf, startFleet } from "../support/start-fleet.ts";

const REPLICAS = 3;

const request = fc
  .record({
    length: fc.integer({ min: 1, max: 30 }),
    base: fc.nat(2),
    maxTokens: fc.integer({ min: 1, max: 24 }),
    minTokens: fc.constantFrom(0, 0, 3),
    n: fc.constantFrom(1, 1, 2, 3),
    logprobs: fc.constantFrom(null, 1),
    promptLogprobs: fc.constantFrom(null, null, null, 1),
    priority: fc.integer({ min: -1, max: 1 }),
    /** The last two cannot be resumed. */
    kind: fc.constantFrom({}, {}, { repetitionPenalty: 1.4 }, { frequencyPenalty: 0.7 }, { temperature: 1, seed: 7n }),
    arrives: fc.nat(20),
    /** Ends it, or one choice of it, this many turns after its arrival. */
    cut: fc.option(fc.record({ after: fc.nat(40), index: fc.option(fc.nat(2)) }), { freq: 4 }),
  })
  .map(({ length, base, maxTokens, minTokens, n, logprobs, promptLogprobs, priority, kind, ...rest }) => {
    const prompt = Array.from({ length }, (_, i) => 3 + ((i * 7 + base) % 200));
    const sampling = { maxTokens, minTokens: Math.min(minTokens, maxTokens), logprobs, promptLogprobs, ...kind };
    return { ...rest, request: generateRequest(prompt, sampling, { n, priority }) };
  });

const event = fc.record({
  at: fc.nat(60),
  replica: fc.nat(REPLICAS - 1),
  what: fc.constantFrom("die", "die quietly", "restart", "return") as fc.Arbitrary<
    "die" | "die quietly" | "restart" | "return"
  >,
});

const schedule = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 8 }),
  events: fc.array(event, { maxLength: 12 }),
  maxInFlight: fc.constantFrom(2, 8),
});

type Schedule = typeof schedule extends fc.Arbitrary<infer T> ? T : never;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The outputs of every request so far, and a promise of its end. */
async function play({ requests, events, maxInFlight }: Schedule) {
  const replicas = Array.from({ length: REPLICAS }, (_, i) => new FakeReplica(`r${i}`, { maxInFlight }));
  const { engine } = await startFleet(replicas, { queueTimeoutMs: 60_000 });
  const seen: EngineOutput[][] = requests.map(() => []);
  const generations: Generation[] = [];
  const ends: Promise<void>[] = [];
  const begin = (i: number) => {
    generations[i] = engine.generate(requests[i]!.request);
    ends.push(follow(generations[i]!, seen[i]!));
  };
  for (let now = 0; now <= 60; now++) {
    for (const { at, replica: i, what } of events) {
      const replica = replicas[i]!;
      if (at !== now) continue;
      if (what === "die" || what === "die quietly") replica.die(what === "die");
      else replica.revive(what === "restart");
    }
    for (const [i, { arrives, cut }] of requests.entries()) {
      if (arrives === now) begin(i);
      if (cut === null || arrives + cut.after !== now) continue;
      if (cut.index === null) generations[i]!.abort();
      else generations[i]!.stop(cut.index);
    }
    await turn();
  }
  for (const replica of replicas) replica.revive(); // a new process is not left alone for what its predecessor did
  await Promise.all(ends);
  const facts = engine.replicas();
  const left = { inFlight: facts.map(({ inFlight }) => inFlight), waiting: engine.stats().waiting };
  await expect.poll(() => replicas.map(({ running }) => running)).toEqual(replicas.map(() => 0));
  await engine.close();
  return { seen, left };
}

async function follow(generation: Generation, into: EngineOutput[]): Promise<void> {
  for await (const output of generation) into.push(output);
}

async function alone(request: GenerateRequest): Promise<EngineOutput[]> {
  const { engine } = await startFleet([new FakeReplica("alone")]);
  const outputs = await outputsOf(engine.generate(request));
  await engine.close();
  return outputs;
}

const sampled = (outputs: readonly EngineOutput[], index: number) =>
  outputs.flatMap((output) => (output.type === "tokens" && output.index === index ? output.tokens : []));

it("never loses or doubles a token, ends every generation, and leaves nothing behind", async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async (plan) => {
      const { seen, left } = await play(plan);
      expect(left).toEqual({ inFlight: [0, 0, 0], waiting: 0 });
      for (const [i, { request, cut }] of plan.requests.entries()) {
        const outputs = seen[i]!;
        const expected = await alone(request);
        expect(outputs.findIndex(({ type }) => type === "prefill")).toBeLessThanOrEqual(0);
        expect(outputs.filter(({ type }) => type === "prefill").length).toBeLessThanOrEqual(1);
        for (let index = 0; index < request.n; index++) {
          const finish = finishOf(outputs, index);
          const tokens = sampled(outputs, index);
          const all = sampled(expected, index);
          if (finish === null) expect(cut === null || (cut.index !== null && cut.index !== index)).toBe(false);
          if (finish?.reason === "error") expect(finish.fault).toBe("unavailable");
          else if (finish !== null) expect([tokens, finish]).toEqual([all, finishOf(expected, index)]);
          expect(tokens).toEqual(all.slice(0, tokens.length));
        }
      }
    }),
    { numRuns: 150 },
  );
});
