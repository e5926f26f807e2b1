// Nothing piles up: 10,000 small requests, some of them cut short, then storms of 1,000 aborts. Looks at the engine's
// private tables on purpose, and at the heap.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { Generation } from "../../src/engine/contract.ts";
import { ChoiceConstraints } from "../support/choice-constraint.ts";
import { FakeAdapters } from "../support/fake-adapters.ts";
import { FakeRunner, hashRow, uniformRow } from "../support/fake-runner.ts";
import { InProcessEngine } from "../support/in-process-engine.ts";
import { lookInside } from "../support/private-members.ts";
import { generateRequest, tokensOf } from "../support/requests.ts";

const NUM_BLOCKS = 48;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapAfterCollection(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** What the engine still holds some turns after the last request. */
async function leftovers(engine: InProcessEngine): Promise<unknown> {
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
  const client = "subject.#client";
  const loop = "subject.#loop";
  const table = `${loop}.#engine.#table`;
  const scheduler = `${loop}.#engine.#scheduler`;
  await lookInside(engine, `${loop}.#engine.checkIntegrity()`);
  return lookInside(
    engine,
    `({
      streams: ${client}.#streams.size,
      calls: ${client}.#calls.size,
      commands: ${loop}.#commands.length,
      requests: ${table}.#requests.size,
      running: ${scheduler}.#running.length,
      waiting: [...${scheduler}.#waiting.values()].length,
      outputs: ${table}.#outputs.length,
      heldBlocks: ${NUM_BLOCKS} - ${loop}.#engine.#kv.available,
    })`,
  );
}

const nothing = {
  streams: 0,
  calls: 0,
  commands: 0,
  requests: 0,
  running: 0,
  waiting: 0,
  outputs: 0,
  heldBlocks: 0,
};

describe("soak", () => {
  it("10,000 requests leave nothing behind", async () => {
    const runner = new FakeRunner({ row: hashRow, vocabSize: 64, positionsPerBlock: 4, numBlocks: NUM_BLOCKS });
    const constraints = new ChoiceConstraints(64);
    const engine = new InProcessEngine({ runner, constraints, adapters: new FakeAdapters() });
    const { version } = await engine.loadAdapter("red");
    let served = 0;
    const one = async (i: number): Promise<void> => {
      const prompt = Array.from({ length: 1 + (i % 9) }, (_, at) => 3 + ((at * 5 + i * (i % 3)) % 60));
      const request = generateRequest(
        prompt,
        { maxTokens: 1 + (i % 4), temperature: i % 2, logprobs: i % 5 === 0 ? 1 : null },
        {
          n: i % 7 === 0 ? 2 : 1,
          cacheSalt: i % 11 === 0 ? String(i) : null,
          adapter: i % 13 === 0 ? version : null,
          grammar: i % 17 === 0 ? "[[3,4],[5]]" : null,
        },
      );
      let outputs = 0;
      for await (const output of engine.generate(request)) {
        expect(output.type === "tokens" && output.finish?.reason === "error").toBe(false);
        if (++outputs === 2 && i % 10 === 0) break;
      }
      served++;
    };
    const run = async (count: number): Promise<void> => {
      let next = 0;
      const client = async (): Promise<void> => {
        while (next < count) await one(next++);
      };
      await Promise.all(Array.from({ length: 40 }, client));
    };
    await run(2000);
    expect(await leftovers(engine)).toEqual(nothing);
    const before = heapAfterCollection();
    await run(10_000);
    expect(await leftovers(engine)).toEqual(nothing);
    expect(heapAfterCollection() - before).toBeLessThan(1_000_000); // 100 bytes per request
    expect(served).toBe(12_000);
    expect(constraints.live).toBe(0);
    expect(engine.stats().prefixHits).toBeGreaterThan(1000);
    await engine.close();
  });

  it("storms of 1,000 aborts, at every stage, leave nothing behind", async () => {
    const runner = new FakeRunner({ row: uniformRow, vocabSize: 64, positionsPerBlock: 4, numBlocks: NUM_BLOCKS });
    const engine = new InProcessEngine({ runner });
    for (const turns of [0, 1, 3, 10]) {
      const storm: Generation[] = [];
      const readers: Promise<number>[] = [];
      for (let i = 0; i < 1000; i++) {
        const prompt = Array.from({ length: 1 + (i % 20) }, (_, at) => 3 + ((at + i) % 60));
        const generation = engine.generate(
          generateRequest(prompt, { maxTokens: 100, ignoreEos: true }, { n: 1 + (i % 3) }),
        );
        storm.push(generation);
        readers.push(
          (async () => {
            let outputs = 0;
            for await (const _ of generation) outputs++;
            return outputs;
          })(),
        );
      }
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      for (const generation of storm) generation.abort();
      await Promise.all(readers);
      expect(await leftovers(engine)).toEqual(nothing);
    }
    const outputs = [];
    for await (const output of engine.generate(generateRequest([5], { maxTokens: 3 }))) outputs.push(output);
    expect(tokensOf(outputs)).toHaveLength(3);
    await engine.close();
  });
});
