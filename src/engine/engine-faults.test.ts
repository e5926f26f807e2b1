import { describe, expect, it } from "vitest";
import { ChoiceConstraints } from "../../test/support/choice-constraint.ts";
import { EngineDriver } from "../../test/support/engine-driver.ts";
import { FakeRunner, hashRow, type RowFunction, scriptedRow } from "../../test/support/fake-runner.ts";
import { finishOf, generateRequest, prefillOf, tokensOf } from "../../test/support/requests.ts";
import type { ConstraintFactory } from "../grammar/match/sequence-constraint.ts";
import type { EngineOutput } from "./contract.ts";

const BLOCK = 4;
const range = (length: number, from = 10): number[] => Array.from({ length }, (_, i) => from + i);
/** Counts upwards, then ends at 20. */
const counting = scriptedRow((tokens) => (tokens.at(-1)! >= 20 ? 2 : tokens.at(-1)! + 1));

function runnerOf(row: RowFunction, options: Partial<ConstructorParameters<typeof FakeRunner>[0]> = {}): FakeRunner {
  return new FakeRunner({ row, positionsPerBlock: BLOCK, ...options });
}

describe("constraints", () => {
  const grammar = JSON.stringify([
    [30, 31, 32, 33, 34, 35],
    [40, 41],
  ]);

  it("force tokens without alternatives: the same output and log-probabilities in fewer steps", async () => {
    const run = async (jump: boolean): Promise<[EngineOutput[], number]> => {
      const runner = runnerOf(hashRow);
      const constraints = new ChoiceConstraints(256, jump);
      const driver = new EngineDriver(runner, { constraints });
      const outputs = await driver.run(
        generateRequest(range(6), { logprobs: 2, temperature: 1, seed: 3n }, { grammar }),
      );
      expect(constraints.live).toBe(0);
      return [outputs, runner.forwards];
    };
    const [forced, fewSteps] = await run(true);
    const [sampled, manySteps] = await run(false);
    const tokens = (outputs: EngineOutput[]) => outputs.flatMap((o) => (o.type === "tokens" ? o.tokens : []));
    expect(tokens(forced)).toEqual(tokens(sampled));
    expect(finishOf(forced)).toEqual({ reason: "stop", stopReason: null });
    expect(fewSteps).toBe(1);
    expect(manySteps).toBe(tokens(sampled).length);
  });

  it("run forced tokens through the model before the next choice", async () => {
    // After the forced [31, 32, 33] the model must see them: it chooses by their sum.
    const row = scriptedRow((tokens) => (tokens.reduce((a, b) => a + b) % 2 === 0 ? 50 : 60));
    const choices = [50, 60].map((last) => [30, 31, 32, 33, last]);
    for (const prompt of [[4], [5], range(6), range(7), range(8)]) {
      const runner = runnerOf(row);
      const driver = new EngineDriver(runner, { constraints: new ChoiceConstraints(256) });
      const outputs = await driver.run(generateRequest(prompt, {}, { grammar: JSON.stringify(choices) }));
      const sum = [...prompt, 30, 31, 32, 33].reduce((a, b) => a + b);
      expect(tokensOf(outputs)).toEqual([30, 31, 32, 33, sum % 2 === 0 ? 50 : 60, 2]);
      expect(runner.forwards).toBe(2);
    }
  });

  it("end the choice once complete, even if min_tokens asks for more", async () => {
    for (const jump of [true, false]) {
      const driver = new EngineDriver(runnerOf(hashRow), { constraints: new ChoiceConstraints(256, jump) });
      const outputs = await driver.run(generateRequest([5], { minTokens: 9, minTokensMask: [2] }, { grammar }));
      expect(JSON.parse(grammar)).toContainEqual(tokensOf(outputs));
      expect(finishOf(outputs)).toEqual({ reason: "stop", stopReason: null });
    }
  });

  it("end a request that they contradict with an error, and no other", async () => {
    const driver = new EngineDriver(runnerOf(counting), { constraints: new ChoiceConstraints(256) });
    const other = driver.submit(generateRequest([16]));
    const sampled = driver.submit(generateRequest([5], { allowedTokenIds: [7] }, { grammar }));
    const forced = driver.submit(generateRequest([5], { badWords: [[31]] }, { grammar: "[[30,31]]" }));
    await driver.finish();
    expect(finishOf(driver.outputs.get(sampled)!)).toMatchObject({ reason: "error", fault: "contradiction" });
    expect(tokensOf(driver.outputs.get(forced)!)).toEqual([30]);
    expect(finishOf(driver.outputs.get(forced)!)).toMatchObject({
      fault: "contradiction",
      message: expect.stringMatching(/position 1: the structured-output constraint, bad_words together/),
    });
    expect(tokensOf(driver.outputs.get(other)!)).toEqual([17, 18, 19, 20, 2]);
  });

  it("end only their own sequence when any of their methods throws", async () => {
    const broken = (method: "create" | "mask" | "accept" | "forced"): ConstraintFactory => {
      const real = new ChoiceConstraints(256, false);
      const boom = (): never => {
        throw new Error(`${method} broke`);
      };
      return {
        create: (...args) => (method === "create" ? boom() : { ...real.create(...args), [method]: boom }),
      };
    };
    for (const method of ["create", "mask", "accept", "forced"] as const) {
      const driver = new EngineDriver(runnerOf(counting), { constraints: broken(method) });
      const constrained = driver.submit(generateRequest([5], {}, { grammar, n: 2 }));
      const other = driver.submit(generateRequest([16]));
      await driver.finish();
      for (const index of [0, 1]) {
        const finish = finishOf(driver.outputs.get(constrained)!, index);
        expect(finish).toMatchObject({ reason: "error", message: `${method} broke` });
      }
      expect(tokensOf(driver.outputs.get(other)!)).toEqual([17, 18, 19, 20, 2]);
    }
  });
});

describe("faults and cancellation", () => {
  it("a failed forward ends the sequences of its step, and the engine continues", async () => {
    let fail = false;
    const runner = runnerOf(counting, {
      before: () => {
        if (fail) throw new Error("out of memory");
      },
    });
    const driver = new EngineDriver(runner, { maxNumSeqs: 2, maxNumBatchedTokens: 12 });
    const running = driver.submit(generateRequest(range(9, 3)));
    const prefilling = driver.submit(generateRequest(range(9, 30), {}, { n: 2 }));
    const waiting = driver.submit(generateRequest([16]));
    await driver.step();
    fail = true;
    await driver.step();
    fail = false;
    await driver.finish();
    for (const handle of [running, prefilling]) {
      expect(finishOf(driver.outputs.get(handle)!)).toEqual({
        reason: "error",
        stopReason: null,
        message: "out of memory",
      });
    }
    expect(tokensOf(driver.outputs.get(waiting)!)).toEqual([17, 18, 19, 20, 2]);
    expect(driver.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
    // What had been computed before the failure is still good.
    const again = await driver.run(generateRequest(range(9, 3)));
    expect(prefillOf(again).cachedTokens).toBe(8);
    expect(tokensOf(again)).toEqual([12, 13, 14, 15, 16, 17, 18, 19]);
  });

  it("a failure before the shared prefill is done ends all choices", async () => {
    const runner = runnerOf(counting, {
      before: () => {
        throw new Error("no");
      },
    });
    const outputs = await new EngineDriver(runner).run(generateRequest([5], {}, { n: 3 }));
    expect([0, 1, 2].map((index) => finishOf(outputs, index)?.reason)).toEqual(["error", "error", "error"]);
    expect(runner.forwards).toBe(0);
  });

  it("logits that are not a distribution end one sequence", async () => {
    const row: RowFunction = (tokens, adapters, out) => {
      counting(tokens, adapters, out);
      if (tokens[0] === 99) out[7] = Number.NaN;
    };
    const driver = new EngineDriver(runnerOf(row));
    const sick = driver.submit(generateRequest([99, 16]));
    const sickPrompt = driver.submit(generateRequest([99, 16], { promptLogprobs: 0 }, { n: 2 }));
    const well = driver.submit(generateRequest([16]));
    await driver.finish();
    expect(finishOf(driver.outputs.get(sick)!)?.reason).toBe("error");
    expect([0, 1].map((i) => finishOf(driver.outputs.get(sickPrompt)!, i)?.reason)).toEqual(["error", "error"]);
    expect(tokensOf(driver.outputs.get(well)!)).toEqual([17, 18, 19, 20, 2]);
  });

  it("stop and abort free blocks before the next step, in any state", async () => {
    const driver = new EngineDriver(runnerOf(hashRow), { maxNumSeqs: 2, maxNumBatchedTokens: BLOCK });
    const handles = range(3, 0).map(() => driver.submit(generateRequest(range(9), { ignoreEos: true }, { n: 2 })));
    await driver.step();
    driver.engine.abort(handles[0]!);
    driver.engine.abort(handles[0]!);
    driver.engine.stop(handles[1]!, 0);
    driver.engine.stop(handles[1]!, 7);
    driver.engine.abort(handles[2]!);
    driver.engine.abort(12345);
    driver.engine.checkIntegrity();
    await driver.finish();
    expect(driver.outputs.get(handles[0]!)).toEqual([]);
    expect(driver.outputs.get(handles[2]!)).toEqual([]);
    expect(tokensOf(driver.outputs.get(handles[1]!)!, 0)).toEqual([]);
    expect(tokensOf(driver.outputs.get(handles[1]!)!, 1)).toHaveLength(8);
    expect(driver.stats()).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
  });
});
