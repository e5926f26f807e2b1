import { describe, expect, it } from "vitest";
import { ChoiceConstraints } from "../../test/support/choice-constraint.ts";
import { EngineDriver } from "../../test/support/engine-driver.ts";
import { FakeRunner, hashRow } from "../../test/support/fake-runner.ts";
import { generateRequest, tokensOf } from "../../test/support/requests.ts";
import type { Chunk } from "../model/runner.ts";

const BLOCK = 4;
const range = (length: number, from = 10): number[] => Array.from({ length }, (_, i) => from + i);

/** A driver that notes the chunks of every step. */
function recording(options: ConstructorParameters<typeof EngineDriver>[1], numBlocks = 64) {
  const steps: { start: number; length: number; logits: Chunk["logits"] }[][] = [];
  const runner = new FakeRunner({
    row: hashRow,
    positionsPerBlock: BLOCK,
    numBlocks,
    before: (chunks) => {
      steps.push(chunks.map(({ start, tokens, logits }) => ({ start, length: tokens.length, logits })));
    },
  });
  return { steps, runner, driver: new EngineDriver(runner, options) };
}

describe("step budget", () => {
  it("cuts long prompts at block boundaries and never stalls a stream", async () => {
    const { steps, runner, driver } = recording({ maxNumBatchedTokens: 11 });
    const stream = driver.submit(generateRequest([5], { maxTokens: 12, ignoreEos: true }));
    await driver.step();
    driver.submit(generateRequest(range(30), { maxTokens: 1 }));
    for (let step = 2; step <= 6; step++) {
      await driver.step();
      expect(tokensOf(driver.outputs.get(stream)!)).toHaveLength(step);
    }
    expect(steps.slice(1, 6).map((chunks) => chunks[1])).toEqual([
      { start: 0, length: 8, logits: "none" },
      { start: 8, length: 8, logits: "none" },
      { start: 16, length: 8, logits: "none" },
      { start: 24, length: 6, logits: "last" },
      undefined,
    ]);
    expect(runner.largestStep).toBeLessThanOrEqual(11);
  });

  it("takes more of a prompt while nothing decodes", async () => {
    const { steps, driver } = recording({ maxNumBatchedTokens: 8, maxNumPromptTokens: 16 });
    driver.submit(generateRequest(range(40), { maxTokens: 3, ignoreEos: true }));
    driver.submit(generateRequest(range(30, 60), { maxTokens: 1 }));
    for (let i = 0; i < 6; i++) await driver.step();
    expect(steps.map((chunks) => chunks.map(({ length }) => length))).toEqual([
      [16],
      [16],
      [8, 8],
      // the first one's stream
      [1, 4],
      [1, 4],
      [14],
    ]);
  });

  it("prefills several sequences in one step", async () => {
    const { steps, driver } = recording({ maxNumBatchedTokens: 20 });
    for (const length of [6, 3, 30]) driver.submit(generateRequest(range(length), { maxTokens: 1 }));
    await driver.step();
    expect(steps[0]).toEqual([
      { start: 0, length: 6, logits: "last" },
      { start: 0, length: 3, logits: "last" },
      { start: 0, length: 8, logits: "none" },
    ]);
  });

  it("leaves a block per step for prefill however many sequences decode", async () => {
    const { steps, driver } = recording({ maxNumBatchedTokens: 1, maxNumSeqs: 8 });
    for (let i = 0; i < 5; i++) driver.submit(generateRequest([5 + i], { maxTokens: 30, ignoreEos: true }));
    for (let i = 0; i < 5; i++) await driver.step();
    driver.submit(generateRequest(range(9), { maxTokens: 1 }));
    steps.length = 0;
    for (let i = 0; i < 3; i++) await driver.step();
    expect(steps.map((chunks) => chunks[5])).toEqual([
      { start: 0, length: 4, logits: "none" },
      { start: 4, length: 4, logits: "none" },
      { start: 8, length: 1, logits: "last" },
    ]);
  });

  it.each([
    [7, 1],
    [8, 8],
  ])("runs %d forced tokens in chunks of %d beside a stream", async (count, chunk) => {
    const { steps, driver } = recording({ constraints: new ChoiceConstraints(256) });
    driver.submit(generateRequest([5], { maxTokens: 30, ignoreEos: true }));
    await driver.step();
    // the first of them is chosen, the others follow from it, and then there is a choice again
    const same = range(count, 30);
    const grammar = JSON.stringify([
      [...same, 100],
      [...same, 101],
    ]);
    driver.submit(generateRequest([6], { maxTokens: 20 }, { grammar }));
    await driver.step();
    await driver.step();
    expect(steps.at(-1)!.map(({ length }) => length)).toEqual([1, chunk]);
    driver.engine.abortAll();
  });

  it("runs at most maxNumSeqs at once", async () => {
    const { steps, driver } = recording({ maxNumSeqs: 3 });
    for (let i = 0; i < 8; i++) driver.submit(generateRequest([5 + i], { maxTokens: 4, ignoreEos: true }, { n: 2 }));
    await driver.finish();
    expect(Math.max(...steps.map((chunks) => chunks.length))).toBe(3);
  });

  it("asks for few rows at a time when all rows of a large vocabulary are wanted", async () => {
    const steps: number[] = [];
    const runner = new FakeRunner({
      row: hashRow,
      vocabSize: 1 << 20,
      positionsPerBlock: BLOCK,
      before: (chunks) => void steps.push(...chunks.map(({ tokens }) => tokens.length)),
    });
    const driver = new EngineDriver(runner, { maxNumBatchedTokens: 1000 });
    await driver.run(generateRequest(range(34), { maxTokens: 1, promptLogprobs: 0 }));
    expect(steps).toEqual([16, 16, 2]); // 16 rows of 2^20 logits are 64 MiB
  });
});

describe("order", () => {
  const firstTokens = (driver: EngineDriver, handles: number[]): number[] => {
    const started: number[] = [];
    for (const handle of handles) if (tokensOf(driver.outputs.get(handle)!).length > 0) started.push(handle);
    return started;
  };
  /** Order in which the handles produce their first token. */
  const orderOf = async (driver: EngineDriver, handles: number[]): Promise<number[]> => {
    const order: number[] = [];
    while (driver.engine.busy) {
      await driver.step();
      for (const handle of firstTokens(driver, handles)) if (!order.includes(handle)) order.push(handle);
    }
    return order;
  };

  it("is priority, then arrival", async () => {
    const { driver } = recording({ maxNumSeqs: 1 });
    const handles = [1, 0, -1, 0, -1].map((priority) => driver.submit(generateRequest([5], {}, { priority })));
    const [a, b, c, d, e] = handles;
    expect(await orderOf(driver, handles)).toEqual([c, e, b, d, a]);
  });

  it("is arrival under fcfs", async () => {
    const { driver } = recording({ maxNumSeqs: 1, policy: "fcfs" });
    const handles = [1, 0, -1].map((priority) => driver.submit(generateRequest([5], {}, { priority })));
    expect(await orderOf(driver, handles)).toEqual(handles);
  });

  it("starves nobody: waiting makes up for priority at the documented rate", async () => {
    const { driver } = recording({ maxNumSeqs: 1, agingSeconds: 10 });
    driver.submit(generateRequest([5], { maxTokens: 2, ignoreEos: true }));
    const patient = driver.submit(generateRequest([6], { maxTokens: 2 }, { priority: 3 }));
    // Every step of one second brings a better request, more than the engine can serve.
    let startedAt: number | null = null;
    for (let second = 1; second <= 200 && startedAt === null; second++) {
      driver.now = second * 1000;
      driver.submit(generateRequest([7], { maxTokens: 2, ignoreEos: true }));
      await driver.step();
      if (tokensOf(driver.outputs.get(patient)!).length > 0) startedAt = second;
    }
    // Overtaken by the first request and by the 29 that came less than 3 * 10 s after it, two steps each.
    expect(startedAt).toBe(2 * (1 + 29) + 1);
    driver.engine.abortAll();
  });

  it("does not let small requests pass a big one that waits for room", async () => {
    const { driver } = recording({}, 16);
    const busy = driver.submit(generateRequest(range(20), { maxTokens: 20, ignoreEos: true }));
    await driver.step();
    const big = driver.submit(generateRequest(range(44), { maxTokens: 4, ignoreEos: true }));
    const small = driver.submit(generateRequest([5], { maxTokens: 4, ignoreEos: true }));
    expect(await orderOf(driver, [busy, big, small])).toEqual([busy, big, small]);
  });
});

describe("preemption", () => {
  it("preempts the worst running sequence, which later continues as if nothing had happened", async () => {
    // 10 blocks: three sequences of 2 blocks each grow to 4 blocks each.
    const { driver } = recording({}, 10);
    const params = { maxTokens: 11, ignoreEos: true, temperature: 1, logprobs: 1 };
    const requests = [1, 0, 0].map((priority, i) =>
      generateRequest(range(5, 10 * i + 10), { ...params, seed: BigInt(i) }, { priority }),
    );
    const handles = requests.map((request) => driver.submit(request));
    const lengths: number[][] = [];
    while (driver.engine.busy) {
      await driver.step();
      lengths.push(handles.map((handle) => tokensOf(driver.outputs.get(handle)!).length));
    }
    expect(driver.stats().preemptions).toBeGreaterThan(0);
    // The two better ones got a token in every step; the worst, first to arrive, was held up.
    const unhindered = lengths.slice(0, 11).map((_, i) => i + 1);
    expect(lengths.slice(0, 11).map((l) => l[1])).toEqual(unhindered);
    expect(lengths.slice(0, 11).map((l) => l[2])).toEqual(unhindered);
    expect(lengths[10]![0]).toBeLessThan(11);
    for (const [i, request] of requests.entries()) {
      const alone = await new EngineDriver(new FakeRunner({ row: hashRow, positionsPerBlock: 16 })).run(request);
      const tokens = (outputs: typeof alone) => outputs.flatMap((o) => (o.type === "tokens" ? o.tokens : []));
      expect(tokens(driver.outputs.get(handles[i]!)!)).toEqual(tokens(alone));
    }
  });

  it("admits nobody in the step that preempts: a newcomer would take the blocks just freed", async () => {
    const { steps, driver } = recording({}, 6);
    const first = driver.submit(generateRequest(range(4), { maxTokens: 12, ignoreEos: true }));
    driver.submit(generateRequest(range(12, 40), { maxTokens: 12, ignoreEos: true }, { priority: 1 }));
    for (let i = 0; i < 4; i++) await driver.step();
    // 2 blocks and 4: nothing is left for the one that both let pass
    driver.submit(generateRequest(range(3, 70), { maxTokens: 2 }, { priority: -1 }));
    while (driver.stats().preemptions === 0) await driver.step();
    expect(steps.at(-1)).toHaveLength(1);
    await driver.step();
    expect(steps.at(-1)!.map(({ length }) => length)).toEqual([1, 3]);
    expect(tokensOf(driver.outputs.get(first)!)).toHaveLength(steps.length);
    driver.engine.abortAll();
  });

  it("leaves a block for each running sequence, so that a newcomer is not preempted in its first steps", async () => {
    const { steps, driver } = recording({}, 4);
    driver.submit(generateRequest(range(4), { maxTokens: 6, ignoreEos: true }));
    await driver.step();
    await driver.step();
    // The first holds 2 of 4 blocks, and will need a third.
    driver.submit(generateRequest(range(8, 40), { maxTokens: 2, ignoreEos: true }));
    while (driver.engine.busy) await driver.step();
    expect(driver.stats().preemptions).toBe(0);
    expect(steps.map((chunks) => chunks.length)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  });

  it("lets a request as large as the pool run alone", async () => {
    const { driver } = recording({}, 4);
    const outputs = await driver.run(generateRequest(range(6), { maxTokens: 10, ignoreEos: true }));
    expect(tokensOf(outputs)).toHaveLength(10);
    expect(driver.stats().preemptions).toBe(0);
  });
});
