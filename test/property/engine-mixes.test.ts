// A request's output never depends on other requests. Random mixes of arrivals, priorities, aborts, choices, lengths,
// adapters, salts and grammars run on tiny pools with tiny budgets, and are compared with each request alone on a roomy
// engine without a prefix cache. The fake model's logits depend on the content of the blocks that were read.

import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import type { EngineOutput, Finish, GenerateRequest, PrefillOutput } from "../../src/engine/contract.ts";
import type { SampledToken } from "../../src/sampling/token-logprobs.ts";
import { ChoiceConstraints } from "../support/choice-constraint.ts";
import { EngineDriver } from "../support/engine-driver.ts";
import { FakeAdapters } from "../support/fake-adapters.ts";
import { FakeRunner, hashRow } from "../support/fake-runner.ts";
import { generateRequest } from "../support/requests.ts";

const VOCAB = 48;
const ADAPTERS = ["red", "blue"];
const totals = { preemptions: 0, prefixHits: 0, copies: 0, clears: 0, aborted: 0, forced: 0 };

interface Shape {
  promptLength: number;
  outputLength: { min: number; max: number };
  requests: { minLength: number; maxLength: number };
  arrives: number;
}

const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });

const token = fc.integer({ min: 3, max: VOCAB - 1 });

/** All paths through up to three forks with forced runs of different lengths between them. */
const grammar = fc
  .array(fc.record({ forced: fc.nat(5), fork: fc.uniqueArray(token, { minLength: 2, maxLength: 2 }) }), {
    maxLength: 3,
  })
  .map((forks) =>
    forks.reduce<number[][]>(
      (ways, { forced, fork }) => ways.flatMap((way) => fork.map((id) => [...way, ...Array(forced).fill(9), id])),
      [[7]],
    ),
  );

const requestOf = ({ promptLength, outputLength, arrives }: Shape) =>
  fc.record({
    /** Prompts share prefixes, so that the prefix cache finds something. */
    prompt: fc
      .tuple(fc.nat(2), fc.integer({ min: 1, max: promptLength }), fc.array(token, { maxLength: promptLength / 3 }))
      .map(([base, length, end]) => [...Array.from({ length }, (_, i) => 3 + ((i * 7 + base) % (VOCAB - 3))), ...end]),
    n: fc.constantFrom(1, 1, 1, 2, 3),
    maxTokens: fc.integer(outputLength),
    temperature: fc.constantFrom(0, 1),
    seed: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 10n }),
    repetitionPenalty: fc.constantFrom(1, 1.3),
    logprobs: fc.constantFrom(null, 0, 2),
    promptLogprobs: rarely(fc.nat(2)),
    adapter: fc.constantFrom(null, null, ...ADAPTERS.map((name) => `version of ${name}`)),
    cacheSalt: rarely(fc.constant("salt")),
    priority: fc.integer({ min: -2, max: 2 }),
    grammar: rarely(grammar),
    arrives: fc.nat(arrives),
    /** The step after its arrival at which it is aborted (index null) or one choice is stopped. */
    cut: rarely(fc.record({ after: fc.nat(8), index: fc.option(fc.nat(2)) })),
  });

const mixOf = (shape: Shape) =>
  fc.record({
    linkSize: fc.constantFrom(1, 2, 4),
    linksPerBlock: fc.constantFrom(1, 2, 3),
    spareBlocks: fc.nat(6),
    maxNumSeqs: fc.integer({ min: 1, max: 6 }),
    maxNumBatchedTokens: fc.integer({ min: 1, max: 40 }),
    policy: fc.constantFrom("priority" as const, "fcfs" as const),
    prefixCaching: fc.boolean(),
    requests: fc.array(requestOf(shape), { ...shape.requests, size: "max" }),
  });

const shapes: [string, Shape][] = [
  [
    "long prompts, short outputs",
    { promptLength: 30, outputLength: { min: 1, max: 12 }, requests: { minLength: 1, maxLength: 7 }, arrives: 12 },
  ],
  [
    "short prompts, long outputs on a pool too small for them",
    { promptLength: 6, outputLength: { min: 12, max: 24 }, requests: { minLength: 3, maxLength: 7 }, arrives: 3 },
  ],
];

type Spec = ReturnType<typeof requestOf> extends fc.Arbitrary<infer T> ? T : never;

function toRequest(spec: Spec): GenerateRequest {
  const { maxTokens, temperature, seed, repetitionPenalty, logprobs, promptLogprobs } = spec;
  return generateRequest(
    spec.prompt,
    { maxTokens, temperature, seed, repetitionPenalty, logprobs, promptLogprobs },
    {
      n: spec.n,
      adapter: spec.adapter,
      cacheSalt: spec.cacheSalt,
      priority: spec.priority,
      grammar: spec.grammar === null ? null : JSON.stringify(spec.grammar),
    },
  );
}

interface Summary {
  prefill: PrefillOutput | null;
  choices: { tokens: SampledToken[]; finish: Finish | null }[];
}

function summarise(outputs: readonly EngineOutput[], n: number): Summary {
  const choices: Summary["choices"] = Array.from({ length: n }, () => ({ tokens: [], finish: null }));
  let prefill: PrefillOutput | null = null;
  for (const output of outputs) {
    if (output.type === "prefill") {
      expect(prefill).toBeNull();
      expect(choices.flatMap((choice) => choice.tokens)).toEqual([]);
      prefill = output;
    } else if (output.type === "tokens") {
      const choice = choices[output.index]!;
      expect(choice.finish).toBeNull();
      choice.tokens.push(...output.tokens);
      choice.finish = output.finish;
    }
  }
  return { prefill, choices };
}

async function driver(
  runner: FakeRunner,
  options: ConstructorParameters<typeof EngineDriver>[1],
): Promise<EngineDriver> {
  const adapters = new FakeAdapters(ADAPTERS.length);
  const made = new EngineDriver(runner, { ...options, adapters });
  for (const name of ADAPTERS) await adapters.load(name);
  return made;
}

async function alone(spec: Spec): Promise<Summary> {
  const runner = new FakeRunner({ row: hashRow, vocabSize: VOCAB, positionsPerBlock: 64, numBlocks: 16 });
  const constraints = new ChoiceConstraints(VOCAB, false);
  const engine = await driver(runner, { maxNumSeqs: 8, maxNumBatchedTokens: 1000, prefixCaching: false, constraints });
  return summarise(await engine.run(toRequest(spec)), spec.n);
}

describe("random mixes", () => {
  afterAll(() => {
    // The property is worth something only if the hard paths were taken.
    for (const [name, count] of Object.entries(totals)) expect(count, name).toBeGreaterThan(20);
  });

  it.each(shapes)("give every request the output it has alone: %s", async (_name, shape) => {
    await fc.assert(
      fc.asyncProperty(mixOf(shape), async ({ linksPerBlock, spareBlocks, requests, ...scheduling }) => {
        const { linkSize } = scheduling;
        const positionsPerBlock = linkSize * linksPerBlock;
        const longest = Math.max(...requests.map((spec) => spec.prompt.length + spec.maxTokens));
        const numBlocks = Math.ceil(longest / positionsPerBlock) + spareBlocks;
        const runner = new FakeRunner({ row: hashRow, vocabSize: VOCAB, positionsPerBlock, numBlocks });
        const constraints = new ChoiceConstraints(VOCAB);
        const engine = await driver(runner, { ...scheduling, constraints });
        const handles = new Map<Spec, number>();
        const cutChoices = new Map<Spec, Set<number>>(requests.map((spec) => [spec, new Set()]));
        for (let step = 0; step <= 20 || engine.engine.busy; step++) {
          if (step > 5000) throw new Error("does not come to an end");
          engine.now = step * 1000;
          for (const spec of requests) {
            if (spec.arrives === step) handles.set(spec, engine.submit(toRequest(spec)));
            if (spec.cut === null || spec.arrives + spec.cut.after !== step) continue;
            const handle = handles.get(spec)!;
            const indexes = spec.cut.index === null ? [0, 1, 2] : [spec.cut.index];
            if (spec.cut.index === null) engine.engine.abort(handle);
            else engine.engine.stop(handle, spec.cut.index);
            for (const index of indexes) cutChoices.get(spec)!.add(index);
            engine.engine.checkIntegrity();
          }
          await engine.step();
        }
        for (const spec of requests) {
          const expected = await alone(spec);
          const actual = summarise(engine.outputs.get(handles.get(spec)!)!, spec.n);
          for (const [index, choice] of actual.choices.entries()) {
            const wanted = expected.choices[index]!;
            if (choice.finish === null) {
              // Cut short: its output must be a prefix of the full output.
              expect(cutChoices.get(spec)!.has(index)).toBe(true);
              expect(choice.tokens).toEqual(wanted.tokens.slice(0, choice.tokens.length));
              totals.aborted++;
            } else {
              expect(choice).toEqual(wanted);
            }
            if (spec.grammar !== null) totals.forced += choice.tokens.length;
          }
          if (actual.prefill !== null) {
            const { cachedTokens, promptLogprobs } = actual.prefill;
            expect(promptLogprobs).toEqual(expected.prefill!.promptLogprobs);
            expect(cachedTokens! % linkSize).toBe(0);
            expect(cachedTokens).toBeLessThan(spec.prompt.length);
            if (spec.promptLogprobs !== null || !scheduling.prefixCaching) expect(cachedTokens).toBe(0);
          }
        }
        const stats = engine.stats();
        expect(stats).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
        expect(constraints.live).toBe(0);
        totals.preemptions += stats.preemptions;
        totals.prefixHits += stats.prefixHits;
        totals.copies += runner.copies;
        totals.clears += runner.clears;
      }),
      { numRuns: 200 },
    );
  });
});
