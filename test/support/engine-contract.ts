// What every engine must do, whatever runs the model: the embedded engine, the fake of the GPU process, the real one. It
// asks only through the contract, and knows of the model that its ids are 0 .. 255 and that it reads adapters.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Engine, EngineOutput, Finish, Generation, PrefillOutput } from "../../src/engine/contract.ts";
import type { SchedulingOptions } from "../../src/engine/scheduling.ts";
import { NoAdapterSlot } from "../../src/model/lora/adapter-host.ts";
import type { SampledToken } from "../../src/sampling/token-logprobs.ts";
import { tokenSet } from "../../src/sampling/token-set.ts";
import { finishOf, generateRequest, prefillOf, tokensOf } from "./requests.ts";

export interface EngineNeeds {
  scheduling?: Partial<SchedulingOptions>;
  /** Tokens that the key/value memory holds; a multiple of 64. */
  cacheTokens?: number;
}

export interface ContractSubject {
  /** Makes an engine with grammars of ChoiceConstraints, and two slots for adapters. */
  start(needs: EngineNeeds): Promise<Engine>;
  /** Three PEFT folders of different content. */
  folders: readonly [string, string, string];
  /** By how much a log-probability may differ between two ways of computing it. */
  tolerance: number;
}

const VOCABULARY = 256;
const LINK = 64;
const range = (length: number, from = 3): number[] => Array.from({ length }, (_, i) => 3 + ((from + i * 7) % 200));
const endless = { ignoreEos: true, eosTokenId: null, minTokensMask: [] };

async function collect(generation: Generation): Promise<EngineOutput[]> {
  const outputs: EngineOutput[] = [];
  for await (const output of generation) outputs.push(output);
  return outputs;
}

const sampledOf = (outputs: readonly EngineOutput[], index = 0): SampledToken[] =>
  outputs.flatMap((output) => (output.type === "tokens" && output.index === index ? output.tokens : []));

export function describeEngine(name: string, subject: () => ContractSubject): void {
  describe(name, () => {
    let engines: Engine[] = [];
    let engine: Engine;
    const start = async (needs: EngineNeeds = {}): Promise<Engine> => {
      const started = await subject().start(needs);
      engines.push(started);
      return started;
    };
    const run = (...given: Parameters<typeof generateRequest>) => collect(engine.generate(generateRequest(...given)));
    const near = (a: number, b: number) => expect(Math.abs(a - b)).toBeLessThanOrEqual(subject().tolerance);

    beforeEach(async () => {
      engines = [];
      engine = await start();
    });
    afterEach(async () => {
      // Whatever happened, nothing is left over.
      for (const each of engines)
        if (each.healthy()) await expect.poll(() => each.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
      await Promise.all(engines.map((each) => each.close()));
    });

    it("describes the model", () => {
      expect(engine.info).toMatchObject({ vocabSize: VOCABULARY, linkSize: LINK, policy: "priority", maxLoras: 2 });
      expect(engine.info.maxModelLen).toBeLessThanOrEqual(engine.info.cacheTokens!);
    });

    it("ends by budget, end of text, stop ids and repetition, and not before min_tokens", async () => {
      const prompt = range(9);
      const free = tokensOf(await run(prompt, endless));
      expect(free).toHaveLength(8);
      const end = free.indexOf(free[3]!);
      const ended = (finish: Partial<Finish>, count: number, outputs: EngineOutput[]) => {
        expect(finishOf(outputs)).toEqual(finish);
        expect(tokensOf(outputs)).toEqual(free.slice(0, count));
      };
      ended({ reason: "length", stopReason: null }, 5, await run(prompt, { ...endless, maxTokens: 5 }));
      ended({ reason: "stop", stopReason: null }, end + 1, await run(prompt, { eosTokenId: free[3]! }));
      ended(
        { reason: "stop", stopReason: free[3]! },
        end + 1,
        await run(prompt, { ...endless, stopTokenIds: [free[3]!] }),
      );
      const held = await run(prompt, { eosTokenId: free[0]!, minTokens: 4, minTokensMask: [free[0]!] });
      expect(tokensOf(held).length).toBeGreaterThanOrEqual(4);
      expect(tokensOf(held).slice(0, 4)).not.toContain(free[0]);
      const repeated = await run(prompt, {
        ...endless,
        ...{ logitBias: [[77, 90]], maxTokens: 30 },
        repetitionDetection: { minPatternSize: 1, maxPatternSize: 2, minCount: 4 },
      });
      expect(tokensOf(repeated)).toEqual([77, 77, 77, 77]);
      expect(finishOf(repeated)).toEqual({ reason: "repetition", stopReason: "repetition_detected" });
    });

    it("draws the same tokens for a seed, alone and beside others, by choice", async () => {
      const sampling = { ...endless, temperature: 1, seed: 42n, topP: 0.9, topK: 50, maxTokens: 12, logprobs: 1 };
      const alone = sampledOf(await run(range(20), sampling));
      const [together, ...others] = await Promise.all([
        run(range(20), sampling, { n: 3 }),
        run(range(70, 9), { ...sampling, seed: null }),
        run(range(3, 80), { ...sampling, seed: 5n }, { n: 2 }),
      ]);
      const ids = (tokens: readonly SampledToken[]) => tokens.map(({ id }) => id);
      expect(ids(sampledOf(together, 0))).toEqual(ids(alone));
      expect(ids(sampledOf(together, 2))).toEqual(tokensOf(await run(range(20), { ...sampling, seed: 44n })));
      expect(ids(sampledOf(together, 1))).not.toEqual(ids(alone));
      for (const [i, { logprobs }] of alone.entries())
        near(logprobs!.logprob, sampledOf(together)[i]!.logprobs!.logprob);
      expect(others.every((outputs) => finishOf(outputs)?.reason === "length")).toBe(true);
      expect(together.filter(({ type }) => type === "prefill")).toHaveLength(1);
    });

    it("reports raw log-probabilities: the most likely, all, or those that were named", async () => {
      const sampling = { ...endless, maxTokens: 3, logprobs: 5 };
      const tokens = sampledOf(await run(range(9), sampling));
      for (const { id, logprobs } of tokens) {
        expect(logprobs).toMatchObject({ rank: 1, topIds: expect.arrayContaining([id]) });
        expect(logprobs!.topIds).toHaveLength(5);
        expect(logprobs!.topLogprobs).toEqual([...logprobs!.topLogprobs].sort((a, b) => b - a));
        expect(logprobs!.topLogprobs[0]).toBe(logprobs!.logprob);
      }
      const bent = { temperature: 0.5, seed: 1n, frequencyPenalty: 1, logitBias: [[tokens[0]!.id, 50]] } as const;
      const [first] = sampledOf(await run(range(9), { ...sampling, ...bent }));
      expect(first!.id).toBe(tokens[0]!.id);
      near(first!.logprobs!.logprob, tokens[0]!.logprobs!.logprob);
      const [all] = sampledOf(await run(range(9), { ...sampling, logprobs: -1 }));
      expect(new Set(all!.logprobs!.topIds).size).toBe(VOCABULARY);
      expect(all!.logprobs!.topLogprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 4);
      const [named] = sampledOf(await run(range(9), { ...sampling, logprobTokenIds: [200, 0] }));
      expect(named!.logprobs!.topIds).toEqual([200, 0]);
      near(named!.logprobs!.topLogprobs[1]!, all!.logprobs!.topLogprobs[all!.logprobs!.topIds.indexOf(0)]!);
      expect(sampledOf(await run(range(9), { ...sampling, logprobs: null }))[0]!.logprobs).toBeNull();
    });

    it("describes prompts as it would have sampled them", async () => {
      const prompt = range(5);
      const sampled = sampledOf(await run(prompt, { ...endless, logprobs: 2, maxTokens: 70 }));
      const whole = [...prompt, ...sampled.map(({ id }) => id)];
      const { promptLogprobs, cachedTokens } = prefillOf(await run(whole, { promptLogprobs: 2, maxTokens: 1 }));
      expect(cachedTokens).toBe(0);
      expect(promptLogprobs).toHaveLength(whole.length);
      expect(promptLogprobs![0]).toBeNull();
      for (const [i, { logprobs }] of sampled.entries()) {
        const described = promptLogprobs![prompt.length + i]!;
        near(described.logprob, logprobs!.logprob);
        expect(described.topIds).toHaveLength(2);
      }
      const sets = [null, tokenSet([1, whole.at(-2)!], VOCABULARY), tokenSet([1], VOCABULARY)];
      const { preferences } = prefillOf(await run(whole, { maxTokens: 1 }, { legalSets: sets }));
      expect(preferences).toHaveLength(3);
      near(preferences![1]!.logprob, promptLogprobs!.at(-2)!.logprob);
      expect(preferences![0]).toMatchObject({ legalMass: 1, likeliestIllegal: null });
      expect(preferences![1]!.legalMass).toBeGreaterThan(0);
      expect(preferences![2]).toMatchObject({ likeliestLegal: { id: 1 } });
      near(Math.exp(preferences![2]!.likeliestLegal!.logprob), preferences![2]!.legalMass);
    });

    it("follows allowed ids, bad words, bias and penalties", async () => {
      const drawn = { ...endless, temperature: 2, seed: 3n, maxTokens: 20 };
      const allowed = tokensOf(await run(range(9), { ...drawn, allowedTokenIds: [9, 10, 11] }));
      expect(new Set([9, 10, 11, ...allowed]).size).toBe(3);
      const words = { allowedTokenIds: [9, 10, 11], badWords: [[9], [10, 11], [11, 11, 10]], badWordTexts: [] };
      const spelt = tokensOf(await run(range(9), { ...drawn, ...words })).join();
      expect(spelt).not.toMatch(/\b9\b|10,11|11,11,10/);
      const once = await run(range(9), { ...endless, maxTokens: 20, frequencyPenalty: 90 });
      expect(new Set(tokensOf(once)).size).toBe(20);
      const unlike = tokensOf(
        await run([50, 51, 52], {
          ...endless,
          allowedTokenIds: [50, 51, 52, 60, 61],
          maxTokens: 4,
          logitBias: [50, 51, 52, 60, 61].map((id) => [id, 100]),
          repetitionPenalty: 9,
        }),
      );
      expect(new Set(unlike.slice(0, 2))).toEqual(new Set([60, 61]));
      const nothing = await run(range(9), { allowedTokenIds: [9], badWords: [[9]] });
      expect(finishOf(nothing)).toMatchObject({ reason: "error", fault: "contradiction" });
    });

    it("follows grammars, and forces what they leave no choice about", async () => {
      const choices = [
        [30, 31, 32, 33, 34, 35, 36, 37, 38, 39],
        [40, 41],
        [40, 42, 43],
      ];
      const grammar = JSON.stringify(choices);
      const sampling = { temperature: 1, seed: 1n, logprobs: 2, maxTokens: 20 };
      const outputs = await run(range(9), sampling, { grammar, n: 4 });
      for (const index of [0, 1, 2, 3]) {
        const ids = tokensOf(outputs, index);
        expect(choices.map((choice) => [...choice, 2])).toContainEqual(ids);
        expect(finishOf(outputs, index)).toEqual({ reason: "stop", stopReason: null });
        for (const { id, logprobs } of sampledOf(outputs, index))
          if (id > 42) expect(logprobs).toMatchObject({ logprob: 0, rank: 1 });
      }
      const one = JSON.stringify([[30, 31, 32, 33, 34]]);
      const forced = await run(range(9), { ...sampling, maxTokens: 3 }, { grammar: one });
      expect([tokensOf(forced), finishOf(forced)?.reason]).toEqual([[30, 31, 32], "length"]);
      const long = await run(range(9), { minTokens: 9, minTokensMask: [2] }, { grammar: one });
      expect([tokensOf(long), finishOf(long)]).toEqual([[30, 31, 32, 33, 34], { reason: "stop", stopReason: null }]);
      const broken = await run(range(9), { badWords: [[31]] }, { grammar: one });
      expect(tokensOf(broken)).toEqual([30]);
      expect(finishOf(broken)).toMatchObject({
        fault: "contradiction",
        message: expect.stringMatching(/position 1.*bad_words/),
      });
      // What follows forced tokens has seen them.
      const after = JSON.stringify([
        [30, 31, 32, 50],
        [30, 31, 32, 60],
        [30, 31, 32, 70],
      ]);
      const [, , , last] = sampledOf(
        await run(range(9), { ...sampling, temperature: 0, logprobs: -1 }, { grammar: after }),
      );
      const plain = sampledOf(
        await run([...range(9), 30, 31, 32], { ...endless, allowedTokenIds: [50, 60, 70], maxTokens: 1, logprobs: -1 }),
      );
      expect(last!.id).toBe(plain[0]!.id);
    });

    it("ends thoughts that are over their budget", async () => {
      const thinking = { startIds: [90], endIds: [91, 92], maxTokens: 3, open: true };
      const ids = tokensOf(await run(range(9), { ...endless, thinking, maxTokens: 8, badWords: [[91], [5, 6]] }));
      expect(ids.slice(3, 5)).toEqual([91, 92]);
    });

    it("stops choices and aborts requests at once, and the others go on", async () => {
      const long = { ...endless, maxTokens: 200 };
      const stopped = engine.generate(generateRequest(range(9), long, { n: 2 }));
      const outputs: EngineOutput[] = [];
      for await (const output of stopped) {
        outputs.push(output);
        if (tokensOf(outputs, 1).length === 5) stopped.stop(1);
        if (tokensOf(outputs).length === 20) stopped.abort();
      }
      expect(tokensOf(outputs, 1).length).toBeLessThan(20);
      const [early, other] = [engine.generate(generateRequest(range(30), long)), run(range(9), endless)];
      early.abort();
      expect(await collect(early)).toEqual([]);
      expect(tokensOf(await other)).toHaveLength(8);
    });

    it("reuses the beginnings of prompts, of one salt and adapter", async () => {
      const prompt = range(150);
      const salted = async (salt: string | null, tokens = prompt) =>
        prefillOf(await run(tokens, { maxTokens: 2 }, { cacheSalt: salt })) as PrefillOutput;
      const before = tokensOf(await run(prompt, endless, { cacheSalt: "a".repeat(64) }));
      expect((await salted("a".repeat(64))).cachedTokens).toBe(128);
      expect((await salted("a".repeat(64), prompt.slice(0, 128))).cachedTokens).toBe(64);
      expect((await salted("b".repeat(64))).cachedTokens).toBe(0);
      expect((await salted(null)).cachedTokens).toBe(0);
      expect(tokensOf(await run(prompt, endless, { cacheSalt: "a".repeat(64) }))).toEqual(before);
      const { prefixQueries, prefixHits, promptTokens, generatedTokens, steps } = engine.stats();
      expect(prefixHits).toBe(128 + 64 + 128);
      expect(prefixQueries).toBe(promptTokens);
      expect(generatedTokens).toBeGreaterThan(20);
      expect(engine.steps!(0).length).toBe(steps);
    });

    it("loads, serves and unloads adapters", async () => {
      const [red, blue, green] = subject().folders;
      const sampling = { ...endless, maxTokens: 4, logprobs: 1 };
      const base = sampledOf(await run(range(9), sampling));
      const first = await engine.loadAdapter(red);
      const second = await engine.loadAdapter(blue);
      expect(await engine.loadAdapter(red)).toEqual(first);
      expect(second.version).not.toBe(first.version);
      await expect(engine.loadAdapter(green)).rejects.toThrow(NoAdapterSlot);
      await expect(engine.loadAdapter("/nowhere")).rejects.toThrow();
      const [one, two, none] = await Promise.all(
        [first.version, second.version, null].map(async (adapter) =>
          sampledOf(await run(range(9), sampling, { adapter })),
        ),
      );
      near(none![0]!.logprobs!.logprob, base[0]!.logprobs!.logprob);
      expect(none!.map(({ id }) => id)).toEqual(base.map(({ id }) => id));
      const logprob = (tokens: readonly SampledToken[]) => tokens[0]!.logprobs!.logprob;
      expect(new Set([logprob(one!), logprob(two!), logprob(none!)]).size).toBe(3);
      await engine.unloadAdapter(first.version);
      await engine.unloadAdapter(first.version);
      const unloaded = await run(range(9), sampling, { adapter: first.version });
      expect(finishOf(unloaded)).toMatchObject({ reason: "error", fault: "unloaded" });
      await engine.loadAdapter(green);
      const running = engine.generate(
        generateRequest(range(9), { ...sampling, maxTokens: 100 }, { adapter: second.version }),
      );
      const iterator = running[Symbol.asyncIterator]();
      await iterator.next();
      await expect(engine.unloadAdapter(second.version)).rejects.toThrow("still has requests");
      running.abort();
    });

    it("gives the same when it must preempt", async () => {
      const small = await start({ cacheTokens: 4 * LINK, scheduling: { maxNumSeqs: 8 } });
      const sampling = { ...endless, temperature: 1, maxTokens: 120, logprobs: 0 };
      const requests = [0, 1, 2].map((i) => generateRequest(range(20 + i, i * 13), { ...sampling, seed: BigInt(i) }));
      const squeezed = await Promise.all(requests.map((request) => collect(small.generate(request))));
      expect(small.stats().preemptions).toBeGreaterThan(0);
      for (const [i, request] of requests.entries()) {
        const alone = sampledOf(await collect(engine.generate(request)));
        const tokens = sampledOf(squeezed[i]!);
        expect(tokens.map(({ id }) => id)).toEqual(alone.map(({ id }) => id));
        for (const [at, { logprobs }] of tokens.entries()) near(logprobs!.logprob, alone[at]!.logprobs!.logprob);
      }
    });

    it("refuses what cannot run, for every choice, and serves by priority", async () => {
      const { maxModelLen } = engine.info;
      for (const request of [
        generateRequest([], {}, { n: 2 }),
        generateRequest(range(9), { maxTokens: maxModelLen }, { n: 2 }),
        generateRequest([999], {}, { n: 2 }),
      ]) {
        const outputs = await collect(engine.generate(request));
        expect(outputs.map((output) => output.type === "tokens" && output.finish?.reason)).toEqual(["error", "error"]);
      }
      const narrow = await start({ scheduling: { maxNumSeqs: 1 } });
      const done: string[] = [];
      const ask = (name: string, priority: number) =>
        collect(narrow.generate(generateRequest(range(9), endless, { priority }))).then(() => done.push(name));
      await Promise.all([ask("first", 0), ask("late", 5), ask("urgent", -5)]);
      expect(done.indexOf("urgent")).toBeLessThan(done.indexOf("late"));
    });
  });
}
