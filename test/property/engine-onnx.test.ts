// The guarantee of engine-mixes.test.ts with real arithmetic: with the ONNX decoder, the tokens and log-probabilities
// of a request are bit-identical alone and in a crowded batch with chunked prefill, prefix hits, shared prefills and
// preemption.

import { describe, expect, it } from "vitest";
import type { EngineOutput, GenerateRequest } from "../../src/engine/contract.ts";
import type { DecoderRunner } from "../../src/model/decoder-runner.ts";
import { fixtureFolder, openRunner } from "../reference/runner-driver.ts";
import { ChoiceConstraints } from "../support/choice-constraint.ts";
import { EngineDriver } from "../support/engine-driver.ts";
import { generateRequest } from "../support/requests.ts";

const words = (length: number, seed: number): number[] =>
  Array.from({ length }, (_, i) => 3 + ((i * 31 + seed * 17) % 250));

function requestsOf(adapter: string): GenerateRequest[] {
  const sampling = { temperature: 1, logprobs: 2, ignoreEos: true, maxTokens: 40 };
  const shared = words(50, 1);
  return [
    generateRequest([...shared, 5], { ...sampling, seed: 1n }, { n: 3, priority: 1 }),
    generateRequest([...shared, 6, 7], { ...sampling, seed: 2n }, { priority: 2 }),
    generateRequest([...shared, 6, 7], { ...sampling, seed: 3n }, { adapter }),
    generateRequest(words(70, 2), { ...sampling, seed: 4n, promptLogprobs: 1 }),
    generateRequest(words(9, 3), { ...sampling, seed: 5n, ignoreEos: false }, { grammar: grammar() }),
    generateRequest(words(33, 4), { ...sampling, temperature: 0 }, { adapter, priority: -1 }),
  ];
}

/** A forced run, a fork, a longer forced run, an end. */
function grammar(): string {
  const long = words(20, 9);
  return JSON.stringify([100, 101].flatMap((fork) => [110, 111].map((last) => [40, 41, 42, fork, ...long, last])));
}

function untimed(outputs: readonly EngineOutput[], n: number) {
  const prompt = outputs.flatMap((output) => (output.type === "prefill" ? [output.promptLogprobs] : []));
  const choices = Array.from({ length: n }, (_, index) =>
    outputs.flatMap((output) => (output.type === "tokens" && output.index === index ? output.tokens : [])),
  );
  return { prompt, choices };
}

describe.each(["llama", "qwen3", "gemma3"] as const)("%s", (family) => {
  it("gives the same bits alone and in a crowd", async () => {
    const roomy = await openRunner(fixtureFolder(family), { numBlocks: 64 });
    const tight = await openRunner(fixtureFolder(family), { numBlocks: 16 });
    const driver = async (runner: DecoderRunner, options: ConstructorParameters<typeof EngineDriver>[1]) => {
      const made = new EngineDriver(runner, {
        ...options,
        adapters: runner.adapters,
        constraints: new ChoiceConstraints(256),
      });
      return { made, adapter: (await runner.adapters.load(fixtureFolder(family))).version };
    };
    const { made: crowd, adapter } = await driver(tight, { maxNumBatchedTokens: 40, linkSize: 8 });
    const requests = requestsOf(adapter);
    const handles: number[] = [];
    for (const request of requests) {
      handles.push(crowd.submit(request));
      await crowd.step();
      await crowd.step();
    }
    await crowd.finish();
    expect(crowd.stats().preemptions).toBeGreaterThan(0);
    expect(crowd.stats().prefixHits).toBeGreaterThan(0);
    for (const [i, request] of requests.entries()) {
      const { made: quiet } = await driver(roomy, { maxNumBatchedTokens: 1000, prefixCaching: false });
      const alone = untimed(await quiet.run(request), request.n);
      expect(alone.choices.filter((tokens) => tokens.length === 0)).toEqual([]);
      expect(untimed(crowd.outputs.get(handles[i]!)!, request.n)).toEqual(alone);
    }
    await roomy.close();
    await tight.close();
  });
});
