// Files written by the benchmark, here and in llama.cpp: the same model. Skipped unless the benchmark's peers are installed
// (npm ci --prefix bench/peers --ignore-scripts). Files that others made: npm run bench:gguf -- FILE.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { divergence } from "../../bench/gguf/divergence.ts";
import type { FileReader } from "../../bench/gguf/file-reader.ts";
import { openInFlywheel } from "../../bench/gguf/flywheel-file.ts";
import { type LlamaCpp, openInLlamaCpp } from "../../bench/gguf/llama-cpp-file.ts";
import { writeRandomCheckpoint } from "../../bench/models/random-checkpoint.ts";
import { need, needing } from "../support/needs.ts";
import { writeAsGguf } from "./write-fixture.ts";

const peers = fileURLToPath(new URL("../../bench/peers/", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "gguf-llama-cpp-"));
const folder = join(scratch, "model");
const tokens = Array.from({ length: 96 }, (_, i) => (i * 37 + 11) % 500);

/**
 * Largest mean KL divergence between llama.cpp and our float32. llama.cpp rounds activations: to the weights' type, or to bytes in
 * blocks of 32 or 256.
 */
const BOUNDS = { f32: 1e-6, f16: 1e-4, bf16: 1e-3, q8_0: 2e-3, q4_0: 2e-3, q4_K: 4e-3, q6_K: 4e-3 } as const;

needing(need("npm ci --prefix bench/peers", existsSync(join(peers, "node_modules/node-llama-cpp")))).describe(
  "beside llama.cpp",
  () => {
    let llamaCpp: LlamaCpp;
    beforeAll(async () => {
      const { load } = await import(/* @vite-ignore */ join(peers, "load.mjs"));
      llamaCpp = await load("node-llama-cpp");
      writeRandomCheckpoint(folder, { layers: 2, hidden: 256, heads: 4, kvHeads: 2, intermediate: 512, vocab: 512 });
    });
    afterAll(() => rmSync(scratch, { recursive: true }));

    async function using<T>(opening: Promise<FileReader>, use: (reader: FileReader) => Promise<T>): Promise<T> {
      const reader = await opening;
      try {
        return await use(reader);
      } finally {
        await reader.close();
      }
    }

    it.each(Object.keys(BOUNDS) as (keyof typeof BOUNDS)[])("a file of %s has the same distributions", async (type) => {
      const path = writeAsGguf(folder, join(scratch, `${type}.gguf`), type);
      const theirs = await using(openInLlamaCpp(llamaCpp, path, 1), (reader) => reader.distributions(tokens));
      const ours = await using(openInFlywheel(path, "float32", 1, tokens.length), (reader) =>
        reader.distributions(tokens),
      );
      expect(divergence(theirs, ours).meanKl).toBeLessThan(BOUNDS[type]);
    });

    it("replies are the same, token for token", async () => {
      const path = writeAsGguf(folder, join(scratch, "replies.gguf"), "f32");
      const prompt = tokens.slice(0, 16);
      const theirs = await using(openInLlamaCpp(llamaCpp, path, 1), (reader) => reader.greedy(prompt, 24));
      const ours = await using(openInFlywheel(path, "float32", 1, 40), (reader) => reader.greedy(prompt, 24));
      expect(ours).toEqual(theirs);
    });
  },
);
