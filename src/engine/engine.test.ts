import { describe, expect, it } from "vitest";
import { EngineDriver } from "../../test/support/engine-driver.ts";
import { FakeAdapters } from "../../test/support/fake-adapters.ts";
import { FakeRunner, hashRow, type RowFunction, scriptedRow } from "../../test/support/fake-runner.ts";
import { finishOf, generateRequest, prefillOf, tokensOf } from "../../test/support/requests.ts";

const BLOCK = 4;
const range = (length: number, from = 10): number[] => Array.from({ length }, (_, i) => from + i);
/** Counts upwards, then ends at 20. */
const counting = scriptedRow((tokens) => (tokens.at(-1)! >= 20 ? 2 : tokens.at(-1)! + 1));

function runnerOf(row: RowFunction, options: Partial<ConstructorParameters<typeof FakeRunner>[0]> = {}): FakeRunner {
  return new FakeRunner({ row, positionsPerBlock: BLOCK, ...options });
}

describe("one request", () => {
  it("emits the prefill, then one token per step, then the reason", async () => {
    const outputs = await new EngineDriver(runnerOf(counting)).run(generateRequest([16, 17]));
    expect(outputs[0]).toMatchObject({ type: "prefill", cachedTokens: 0, promptLogprobs: null });
    expect(outputs.slice(1)).toEqual(
      [18, 19, 20, 2].map((id) => ({
        type: "tokens",
        index: 0,
        tokens: [{ id, logprobs: null }],
        finish: id === 2 ? { reason: "stop", stopReason: null } : null,
      })),
    );
  });

  it("ends at its budget, and reports queueing and prefill time", async () => {
    const runner = runnerOf(counting, {
      before: () => {
        driver.now += 30;
      },
    });
    const driver = new EngineDriver(runner, { maxNumBatchedTokens: BLOCK });
    const handle = driver.submit(generateRequest(range(7, 3), { maxTokens: 2 }));
    driver.now += 12;
    await driver.finish();
    const outputs = driver.outputs.get(handle)!;
    expect(tokensOf(outputs)).toEqual([10, 11]);
    expect(finishOf(outputs)).toEqual({ reason: "length", stopReason: null });
    expect(prefillOf(outputs).queuedMs).toBe(12);
  });

  it("is refused with an error for every choice when it cannot run", async () => {
    const driver = new EngineDriver(runnerOf(counting, { maxPositions: 100, numBlocks: 5 }));
    const refused: [string, Parameters<typeof generateRequest>][] = [
      ["the prompt is empty", [[]]],
      ["13 prompt tokens plus 8 output tokens exceed the 20 that fit", [range(13)]],
      ["prompt token 256 is outside the vocabulary of 256", [[5, 256]]],
      ["prompt token -1 is outside", [[-1]]],
      ["prompt token 1.5 is outside", [[1.5]]],
      ["maxTokens must be at least 1", [[5], { maxTokens: 0 }]],
      ["adapter v9 is not loaded", [[5], {}, { adapter: "v9" }]],
      ["this engine has no grammars", [[5], {}, { grammar: "[[3]]" }]],
      ["the legal sets leave no prompt before them", [[5, 6], {}, { legalSets: [Int32Array.of(7), Int32Array.of(8)] }]],
    ];
    for (const [message, [prompt, sampling, rest]] of refused) {
      const outputs = await driver.run(generateRequest(prompt, sampling, { ...rest, n: 2 }));
      expect(outputs).toHaveLength(2);
      for (const index of [0, 1]) {
        expect(finishOf(outputs, index)).toMatchObject({ reason: "error", message: expect.stringContaining(message) });
      }
    }
    expect(driver.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0, generatedTokens: 0 });
    expect(tokensOf(await driver.run(generateRequest(range(12, 3))))).toEqual([15, 16, 17, 18, 19, 20, 2]);
  });
});

describe("choices", () => {
  it("share one prefill, the partly filled block included", async () => {
    const runner = runnerOf(hashRow);
    const driver = new EngineDriver(runner);
    const handle = driver.submit(generateRequest(range(10), { temperature: 1, seed: 5n, ignoreEos: true }, { n: 3 }));
    await driver.step();
    expect(runner.tokensRun).toBe(10);
    expect(runner.copies).toBe(2 * 3);
    await driver.finish();
    expect(runner.tokensRun).toBe(10 + 3 * 7);
    const outputs = driver.outputs.get(handle)!;
    expect(outputs.filter((output) => output.type === "prefill")).toHaveLength(1);
    const choices = [0, 1, 2].map((index) => tokensOf(outputs, index));
    expect(new Set(choices.map(String)).size).toBe(3);
    for (const [i, tokens] of choices.entries()) {
      const sampling = { temperature: 1, seed: 5n + BigInt(i), ignoreEos: true };
      const single = await new EngineDriver(runnerOf(hashRow)).run(generateRequest(range(10), sampling));
      expect(tokens).toEqual(tokensOf(single));
    }
  });

  it("compute their prompt later if they find no room", async () => {
    const driver = new EngineDriver(runnerOf(hashRow), { maxNumSeqs: 2 });
    const outputs = await driver.run(generateRequest(range(9), { temperature: 1, seed: 1n }, { n: 5 }));
    for (const index of range(5, 0)) {
      const seed = 1n + BigInt(index);
      const single = await new EngineDriver(runnerOf(hashRow)).run(generateRequest(range(9), { temperature: 1, seed }));
      expect(tokensOf(outputs, index)).toEqual(tokensOf(single));
    }
  });

  it("say what the one found in the cache that computed the prompt, if another began it", async () => {
    const driver = new EngineDriver(runnerOf(hashRow), { maxNumBatchedTokens: BLOCK });
    const handle = driver.submit(generateRequest(range(10), { maxTokens: 1 }, { n: 2 }));
    await driver.step();
    driver.engine.stop(handle, 0);
    await driver.finish();
    expect(prefillOf(driver.outputs.get(handle)!).cachedTokens).toBe(BLOCK);
    // 10 tokens were asked for twice; the second time, 4 were there, so 6 of the prompt and the new one count for the step
    expect(driver.stats()).toMatchObject({ prefixQueries: 20, prefixHits: BLOCK, stepTokens: { sum: 6 + 1 } });
  });

  it("continue when the first one is stopped in the middle of the prefill", async () => {
    const driver = new EngineDriver(runnerOf(counting), { maxNumBatchedTokens: BLOCK });
    const handle = driver.submit(generateRequest(range(10, 8), { promptLogprobs: 0 }, { n: 3 }));
    await driver.step();
    driver.engine.stop(handle, 0);
    driver.engine.stop(handle, 1);
    await driver.finish();
    const outputs = driver.outputs.get(handle)!;
    expect([0, 1, 2].map((index) => tokensOf(outputs, index))).toEqual([[], [], [18, 19, 20, 2]]);
    expect(prefillOf(outputs).promptLogprobs).toHaveLength(10);
    expect(prefillOf(outputs).promptLogprobs!.slice(1)).not.toContain(null);
  });
});

describe("prefix cache", () => {
  it("reuses full blocks, at most all but one token, and reports them", async () => {
    const runner = runnerOf(counting);
    const driver = new EngineDriver(runner);
    const cached = async (length: number, rest = {}): Promise<number | null> =>
      prefillOf(await driver.run(generateRequest(range(length, 3), { maxTokens: 1 }, rest))).cachedTokens;
    expect(await cached(8)).toBe(0);
    expect(await cached(8)).toBe(4);
    expect(await cached(9)).toBe(8);
    expect(await cached(11)).toBe(8);
    expect(await cached(3)).toBe(0);
    expect(await cached(9, { cacheSalt: "a" })).toBe(0);
    expect(await cached(9, { cacheSalt: "a" })).toBe(8);
    expect(await cached(9, { cacheSalt: "b" })).toBe(0);
    expect(runner.copies).toBe(0);
    expect(driver.stats()).toMatchObject({ prefixQueries: 8 + 8 + 9 + 11 + 3 + 9 + 9 + 9, prefixHits: 4 + 8 + 8 + 8 });
  });

  it("finds generated tokens too, as the next turn of a chat needs", async () => {
    const driver = new EngineDriver(runnerOf(counting));
    await driver.run(generateRequest(range(6, 3), { maxTokens: 7 })); // positions 0..11 computed, token 15 not run
    const outputs = await driver.run(generateRequest([...range(12, 3), 50]));
    expect(prefillOf(outputs).cachedTokens).toBe(12);
  });

  it("copies blocks that a running sequence holds", async () => {
    const runner = runnerOf(hashRow);
    const driver = new EngineDriver(runner);
    const first = driver.submit(generateRequest(range(9), { ignoreEos: true }));
    await driver.step();
    const second = driver.submit(generateRequest(range(9), { ignoreEos: true }));
    await driver.finish();
    expect(prefillOf(driver.outputs.get(second)!).cachedTokens).toBe(8);
    expect(runner.copies).toBe(2);
    expect(tokensOf(driver.outputs.get(second)!)).toEqual(tokensOf(driver.outputs.get(first)!));
  });

  it("keeps adapters apart by content version", async () => {
    const adapters = new FakeAdapters();
    const driver = new EngineDriver(runnerOf(hashRow), { adapters });
    const { version } = await adapters.load("red");
    const run = async (adapter: string | null): Promise<[number | null, number[]]> => {
      const outputs = await driver.run(generateRequest(range(9), {}, { adapter }));
      return [prefillOf(outputs).cachedTokens, tokensOf(outputs)];
    };
    const [hits, base] = await run(null);
    const [otherHits, other] = await run(version);
    expect({ hits, otherHits }).toEqual({ hits: 0, otherHits: 0 });
    expect(other).not.toEqual(base);
    expect(await run(version)).toEqual([8, other]);
    expect(await run(null)).toEqual([8, base]);
  });

  it("is filled but not read by requests for prompt log-probabilities", async () => {
    const driver = new EngineDriver(runnerOf(hashRow), { maxNumBatchedTokens: BLOCK });
    const plain = await driver.run(generateRequest(range(9)));
    const first = await driver.run(generateRequest(range(9), { promptLogprobs: 1 }, { cacheSalt: "s" }));
    const again = await driver.run(generateRequest(range(9), { promptLogprobs: 1 }, { cacheSalt: "s" }));
    const after = await driver.run(generateRequest(range(9), {}, { cacheSalt: "s" }));
    expect([plain, first, again, after].map((outputs) => prefillOf(outputs).cachedTokens)).toEqual([0, 0, 0, 8]);
    expect(tokensOf(after)).toEqual(tokensOf(plain));
    const rows = prefillOf(first).promptLogprobs!;
    expect(prefillOf(again).promptLogprobs).toEqual(rows);
    expect(rows).toHaveLength(9);
    expect(rows[0]).toBeNull();
    for (const row of rows.slice(1)) {
      expect(row!.logprob).toBeLessThanOrEqual(row!.topLogprobs[0]!);
      expect(row!.topIds).toHaveLength(1);
    }
  });

  it("is read by requests that ask about their last tokens, up to the first of these", async () => {
    const driver = new EngineDriver(runnerOf(hashRow), { maxNumBatchedTokens: BLOCK });
    const prompt = range(17);
    const whole = prefillOf(await driver.run(generateRequest(prompt, { promptLogprobs: -1 }))).promptLogprobs!;
    const legalSets = [null, Int32Array.of(0b1010), new Int32Array(8), Int32Array.of(0, -1)];
    const answer = prefillOf(await driver.run(generateRequest(prompt, {}, { legalSets })));
    // token 13 needs the logits of position 12, which is not computed for a prefix of 12
    expect(answer.cachedTokens).toBe(12);
    const { preferences } = answer;
    expect(preferences).toHaveLength(4);
    for (const [i, set] of legalSets.entries()) {
      const { logprob, topIds, topLogprobs } = whole[13 + i]!;
      const isLegal = (id: number) => set === null || ((set[id >>> 5] ?? 0) & (1 << (id & 31))) !== 0;
      const all = topIds.map((id, k) => ({ id, logprob: topLogprobs[k]! }));
      const mass = all.filter(({ id }) => isLegal(id)).reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
      expect(preferences![i]).toEqual({
        logprob,
        legalMass: expect.closeTo(mass, 6),
        likeliestLegal: all.find(({ id }) => isLegal(id)) ?? null,
        likeliestIllegal: all.find(({ id }) => !isLegal(id)) ?? null,
      });
    }
  });

  it("can be switched off", async () => {
    const driver = new EngineDriver(runnerOf(counting), { prefixCaching: false });
    for (let i = 0; i < 2; i++) {
      expect(prefillOf(await driver.run(generateRequest(range(9, 3), { maxTokens: 1 }))).cachedTokens).toBe(0);
    }
  });
});
