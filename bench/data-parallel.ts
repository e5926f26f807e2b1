// `npm run bench:fleet`: tokens per second and memory of several embedded engines against one. Every arrangement runs in
// a process of its own. "8x2" means 8 engines of 2 threads.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createEmbeddedEngines } from "../src/app/embedded-engine.ts";
import type { Engine } from "../src/engine/contract.ts";
import { greedyRequest } from "./contenders/engine-requests.ts";
import { type Size, shapes, sizes, writeRandomCheckpoint } from "./models/random-checkpoint.ts";

const PROMPT_TOKENS = 64;
const OUTPUT_TOKENS = 64;

const { values } = parseArgs({
  options: {
    arrangements: { type: "string", default: "1x2,2x1" },
    sequences: { type: "string", default: "64" },
    size: { type: "string", default: "44m" },
    model: { type: "string" },
    only: { type: "string" },
  },
});

if (values.only !== undefined) await measure(values.only, values.model!);
else compare();

function compare(): void {
  const folder = values.model ?? mkdtempSync(join(tmpdir(), "flywheel-fleet-"));
  try {
    if (values.model === undefined) {
      if (!sizes.includes(values.size as Size)) throw new Error(`--size is one of ${sizes.join(", ")}`);
      writeRandomCheckpoint(folder, shapes[values.size as Size]);
    }
    console.log("| engines x threads | tokens/s | against the first | memory at start, MiB | under load, MiB |");
    console.log("|---|---:|---:|---:|---:|");
    let first = 0;
    for (const arrangement of values.arrangements.split(",")) {
      const args = [fileURLToPath(import.meta.url), "--only", arrangement, "--model", folder];
      const text = execFileSync(process.execPath, [...args, "--sequences", values.sequences], { encoding: "utf8" });
      const { speed, idle, busy } = JSON.parse(text) as Record<"speed" | "idle" | "busy", number>;
      first ||= speed;
      const cells = [arrangement, speed.toFixed(0), (speed / first).toFixed(2), mebibytes(idle), mebibytes(busy)];
      console.log(`| ${cells.join(" | ")} |`);
    }
  } finally {
    if (values.model === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Prints JSON: tokens per second of the second of two rounds, and resident bytes. */
async function measure(arrangement: string, folder: string): Promise<void> {
  const [engines, threads] = arrangement.split("x").map(Number) as [number, number];
  const sequences = Number(values.sequences);
  const engine = await createEmbeddedEngines({
    folder,
    engines,
    threads: engines * threads,
    kvCacheBytes: 2 ** 30,
    scheduling: { maxNumSeqs: Math.ceil(sequences / engines) },
    fleet: { readAdapter: () => Promise.reject(new Error("no adapters")), queueTimeoutMs: 0, onFault: console.error },
  });
  const idle = process.memoryUsage.rss();
  await round(engine, sequences, 0);
  const started = performance.now();
  await round(engine, sequences, 1);
  const speed = (sequences * OUTPUT_TOKENS) / ((performance.now() - started) / 1000);
  console.log(JSON.stringify({ speed, idle, busy: process.memoryUsage.rss() }));
  await engine.close();
}

async function round(engine: Engine, sequences: number, number: number): Promise<void> {
  await Promise.all(
    Array.from({ length: sequences }, async (_, i) => {
      const promptTokenIds = Array.from(
        { length: PROMPT_TOKENS },
        (_, at) => 5 + ((at * 31 + i * 7 + number * 997) % 3000),
      );
      for await (const output of engine.generate(greedyRequest(promptTokenIds, { maxTokens: OUTPUT_TOKENS }))) {
        if (output.type === "tokens" && output.finish?.reason === "error") throw new Error(output.finish.message);
      }
    }),
  );
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
