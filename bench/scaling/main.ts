// `npm run bench:scaling`: how int8 scales with threads, with the length of the context and with the number of adapters.
// Prints one table for each. Engines run in processes of their own.

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import type { Contender, ContenderOptions } from "../contenders/contender.ts";
import { ModelFiles } from "../models/model-files.ts";
import { Random } from "../models/random.ts";
import { type Size, sizes } from "../models/random-checkpoint.ts";
import { flagsOrExit } from "../process/flags-or-exit.ts";
import { type Remote, startRemote } from "../process/remote.ts";
import { type Lap, median } from "../process/stopwatch.ts";
import { describeMachine } from "../report/machine.ts";
import { stepTimes } from "./adapters.ts";

const PARTS = ["threads", "long", "adapters"] as const;
const CONTEXTS = [1024, 8192, 32_768];
const USAGE = `npm run bench:scaling -- [options]
  --parts LIST      some of ${PARTS.join(",")} (default: all)
  --size NAME       random weights for threads and adapters: ${sizes.join(" or ")} (default: 350m)
  --threads LIST    (default: 1, 2, 4 … up to all cores); the last of them for the other parts`;

interface Cell {
  name: string;
  /** Tokens of each sequence before the first measured step. */
  past: number;
  /** 0 = the prompt itself is measured. */
  batch: number;
}

/** Median of some laps. */
interface Speed {
  tokensPerSecond: number;
  cpuMsPerToken: number;
}

const flags = flagsOrExit(readFlags, USAGE);
const { cpu, instructionSets, kernels, cores, node, load } = describeMachine();
console.log(
  `${cpu} (${instructionSets.join(", ")}), ${cores} cores, Node ${node}, kernels ${kernels}, load ${load.toFixed(2)}\n`,
);
if (flags.parts.includes("threads")) await threadsPart();
if (flags.parts.includes("long")) await longPart();
if (flags.parts.includes("adapters")) await adaptersPart();

function readFlags(args: readonly string[]) {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ args: [...args], options: { parts: text, size: text, threads: text } });
  const doubling = [1, 2, 4, 8, 16, 32, 64].filter((count) => count <= availableParallelism());
  const threads = values.threads === undefined ? doubling : values.threads.split(",").map(Number);
  if (!threads.every((count) => Number.isInteger(count) && count > 0)) throw new Error("--threads needs whole numbers");
  const size = values.size ?? "350m";
  if (!sizes.includes(size as Size)) throw new Error(`--size is one of ${sizes.join(", ")}`);
  const parts = values.parts?.split(",") ?? PARTS;
  for (const part of parts) if (!PARTS.some((known) => known === part)) throw new Error(`there is no part ${part}`);
  return { parts, size: size as Size, threads };
}

async function threadsPart(): Promise<void> {
  const cells = [
    { name: "prompt of 1,024", past: 1024, batch: 0 },
    { name: "1 × 256", past: 256, batch: 1 },
    { name: "32 × 256", past: 256, batch: 32 },
  ];
  console.log(`Tokens per second, ${flags.size} weights (milliseconds of CPU time per token)\n`);
  console.log(`| threads | ${cells.map(({ name }) => name).join(" | ")} |\n|---:|${cells.map(() => "---:|").join("")}`);
  const files = new ModelFiles(null, flags.size);
  try {
    for (const threads of flags.threads) {
      const engine = await start("flywheel", files, threads, cells);
      const speeds: Speed[] = [];
      for (const cell of cells) speeds.push(await measure(engine.object, cell, files, 3));
      await engine.stop();
      const texts = speeds.map(
        ({ tokensPerSecond, cpuMsPerToken }) => `${tokensPerSecond.toFixed(0)} (${cpuMsPerToken.toFixed(2)})`,
      );
      console.log(`| ${[threads, ...texts].join(" | ")} |`);
    }
  } finally {
    files.remove();
  }
}

async function longPart(): Promise<void> {
  const threads = flags.threads.at(-1)!;
  console.log(
    `\nLong contexts, 44m weights, ${threads} threads: tokens per second of the prompt and after it, and memory\n`,
  );
  console.log(
    "| tokens | engine | prompt | one sequence after it | ms per token | resident MiB |\n|---:|---|---:|---:|---:|---:|",
  );
  const files = new ModelFiles(null, "44m", 2 * CONTEXTS.at(-1)!);
  try {
    for (const tokens of CONTEXTS) {
      const cells = [
        { name: "prompt", past: tokens, batch: 0 },
        { name: "after", past: tokens, batch: 1 },
      ];
      for (const engine of ["flywheel", "llama.cpp"] as const) {
        const remote = await start(engine, files, threads, cells);
        const [prompt, after] = [
          await measure(remote.object, cells[0]!, files, 1),
          await measure(remote.object, cells[1]!, files, 1),
        ];
        const mebibytes = remote.memory().residentBytes / 2 ** 20;
        await remote.stop();
        const numbers = [prompt!.tokensPerSecond.toFixed(0), after!.tokensPerSecond.toFixed(0)];
        const perToken = (1000 / after!.tokensPerSecond).toFixed(2);
        console.log(`| ${[tokens, engine, ...numbers, perToken, mebibytes.toFixed(0)].join(" | ")} |`);
      }
    }
  } finally {
    files.remove();
  }
}

async function adaptersPart(): Promise<void> {
  const threads = flags.threads.at(-1)!;
  console.log(`\n32 sequences past 256 with adapters of rank 16, ${flags.size} weights, ${threads} threads\n`);
  console.log("| adapters in the batch | ms per step | speed |\n|---:|---:|---:|");
  const files = new ModelFiles(null, flags.size);
  try {
    const counts = [0, 1, 4, 8];
    const milliseconds = await stepTimes(files.checkpoint.path, threads, counts);
    for (const [i, adapters] of counts.entries()) {
      const speed = milliseconds[0]! / milliseconds[i]!;
      console.log(`| ${[adapters, milliseconds[i]!.toFixed(2), speed.toFixed(2)].join(" | ")} |`);
    }
  } finally {
    files.remove();
  }
}

function start(engine: "flywheel" | "llama.cpp", files: ModelFiles, threads: number, cells: readonly Cell[]) {
  const module = engine === "flywheel" ? "../contenders/flywheel.js" : "../contenders/llama-cpp.js";
  const options: ContenderOptions = {
    model: files.pathFor(engine, "int8"),
    precision: "int8",
    threads,
    totalTokens: Math.max(...cells.map(({ past, batch }) => Math.max(1, batch) * (past + stepsOf(batch) + 2))),
  };
  const settings = engine === "llama.cpp" ? { flashAttention: true } : {};
  return startRemote<Contender>(new URL(module, import.meta.url), { ...options, ...settings }) as Promise<
    Remote<Contender>
  >;
}

async function measure(engine: Contender, { past, batch }: Cell, files: ModelFiles, laps: number): Promise<Speed> {
  const prompt = new Random(7).tokens(past, files.checkpoint.config.vocabSize);
  const results: Lap[] = [];
  if (batch === 0) {
    await engine.prefill(prompt.slice(0, 1024));
    for (let i = 0; i < laps; i++) results.push(await engine.prefill(prompt));
  } else {
    await engine.prepareDecode(prompt, batch, stepsOf(batch));
    for (let i = 0; i < laps; i++) results.push(await engine.decode());
    await engine.finishDecode();
  }
  return {
    tokensPerSecond: median(results.map(({ tokens, seconds }) => tokens / seconds)),
    cpuMsPerToken: median(results.map(({ tokens, cpuSeconds }) => (1000 * cpuSeconds) / tokens)),
  };
}

function stepsOf(batch: number): number {
  return batch === 1 ? 48 : 16;
}
