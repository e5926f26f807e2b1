// Compares a real checkpoint (MiniMind2-small, 26 M parameters, fp16) with Hugging Face transformers. The checkpoint is
// not part of the project. FLYWHEEL_MINIMIND names its folder, which also holds reference.json; without it, these are
// skipped.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blockOfLinks, DEFAULT_LINK_SIZE } from "../../src/app/embedded-engine.ts";
import type { DecoderRunner } from "../../src/model/decoder-runner.ts";
import { need, needing } from "../support/needs.ts";
import { argmax, blocksFrom, chunk, logSoftmax, openRunner, runAlone } from "./runner-driver.ts";

const folder = process.env.FLYWHEEL_MINIMIND;
const BLOCK = blockOfLinks(DEFAULT_LINK_SIZE);

interface Case {
  input_ids: number[];
  prompt_logprobs: number[];
  greedy_ids: number[];
}

needing(need("FLYWHEEL_MINIMIND, the folder of that checkpoint", folder !== undefined)).describe(
  "MiniMind2-small",
  () => {
    let cases: Case[];
    let runner: DecoderRunner;
    const open = (weightType: "float32" | "int8" | "int4") =>
      openRunner(folder!, { weightType, threads: 2, positionsPerBlock: BLOCK });
    const blocks = (tokens: number) => blocksFrom(0, tokens, BLOCK);

    beforeAll(async () => {
      cases = JSON.parse(readFileSync(join(folder!, "reference.json"), "utf8")).cases;
      runner = await open("float32");
    });
    afterAll(() => runner?.close());

    it("gives the reference log-probabilities of prompts", async () => {
      for (const { input_ids, prompt_logprobs } of cases) {
        const logits = await runAlone(runner, chunk(input_ids, 0, blocks(input_ids.length)));
        for (const [i, expected] of prompt_logprobs.entries()) {
          const row = logSoftmax(logits.subarray(i * runner.vocabSize, (i + 1) * runner.vocabSize));
          expect(Math.abs(row[input_ids[i + 1]!]! - expected)).toBeLessThan(2e-3);
        }
      }
    });

    it("continues greedily as the reference does", async () => {
      for (const { input_ids, greedy_ids } of cases) {
        const held = blocks(input_ids.length + greedy_ids.length);
        let logits = await runAlone(runner, chunk(input_ids, 0, held, { logits: "last" }));
        const output = [argmax(logits)];
        while (output.length < greedy_ids.length) {
          const position = input_ids.length + output.length - 1;
          logits = await runAlone(runner, chunk([output.at(-1)!], position, held));
          output.push(argmax(logits));
        }
        expect(output).toEqual(greedy_ids);
      }
    });

    // Measured: int8 0.00002, int4 0.93 (bench/notes/accuracy.md).
    it.each([
      ["int8", 1e-3],
      ["int4", 1.2],
    ] as const)("%s stays close to float32", async (weightType, bound) => {
      const rounded = await open(weightType);
      let divergence = 0;
      let rows = 0;
      for (const { input_ids, greedy_ids } of cases) {
        const ids = [...input_ids, ...greedy_ids];
        const [exact, close] = [runner, rounded].map((r) => runAlone(r, chunk(ids, 0, blocks(ids.length))));
        const [p, q] = [await exact!, await close!];
        for (let at = 0; at < p.length; at += runner.vocabSize, rows++) {
          const a = logSoftmax(p.subarray(at, at + runner.vocabSize));
          const b = logSoftmax(q.subarray(at, at + runner.vocabSize));
          for (const [i, logprob] of a.entries()) divergence += Math.exp(logprob) * (logprob - b[i]!);
        }
      }
      console.log(`${weightType}: mean KL to float32 ${(divergence / rows).toFixed(5)} over ${rows} positions`);
      expect(divergence / rows).toBeLessThan(bound);
      await rounded.close();
    });
  },
);
