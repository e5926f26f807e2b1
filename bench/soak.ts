// `npm run bench:soak`: sends thousands of short requests of every kind through the engine, with a small model and a cache
// too small for all of them. Fails if memory grows after the warm-up, a request does not end as it should, or blocks are
// still held at the end.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  blockOfLinks,
  cacheTypeHere,
  createEmbeddedEngine,
  DEFAULT_LINK_SIZE,
  DEFAULT_WEIGHT_TYPE,
} from "../src/app/embedded-engine.ts";
import type { Engine } from "../src/engine/contract.ts";
import { blockBytes } from "../src/model/attention/cache-type.ts";
import { readModelConfig } from "../src/model/checkpoint/model-config.ts";
import { type Shape, writeRandomCheckpoint } from "./models/random-checkpoint.ts";
import { SoakTraffic } from "./soak-traffic.ts";

const SHAPE: Shape = { layers: 4, hidden: 128, heads: 4, kvHeads: 2, intermediate: 352, vocab: 2048 };
const BLOCKS = 14;
const CONCURRENCY = 24;
const SAMPLES = 100;
/** Growth that allocators and garbage collection explain. */
const ALLOWED_GROWTH = 8 * 2 ** 20;

interface Sample {
  residentBytes: number;
  kvUsage: number;
}

const { values } = parseArgs({ options: { requests: { type: "string", default: "10000" } } });
const requests = Number(values.requests);
if (!Number.isInteger(requests) || requests < 5000) {
  console.error(`--requests needs a whole number of at least 5000, found "${values.requests}"`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "flywheel-soak-"));
try {
  writeRandomCheckpoint(folder, SHAPE);
  const cacheType = await cacheTypeHere(DEFAULT_WEIGHT_TYPE);
  const kvCacheBytes = BLOCKS * blockBytes(readModelConfig(folder), blockOfLinks(DEFAULT_LINK_SIZE), cacheType);
  const faults: Error[] = [];
  const engine = await createEmbeddedEngine({
    folder,
    threads: 1,
    kvCacheBytes,
    onFault: (error) => faults.push(error),
  });
  const started = performance.now();
  const samples = await soak(engine, requests);
  const seconds = (performance.now() - started) / 1e3;
  const problems = [...faults.map((error) => `fault: ${error.message}`), ...findings(engine, samples)];
  print(engine, samples, seconds, kvCacheBytes);
  await engine.close();
  for (const problem of problems) console.log(`FAILED: ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function soak(engine: Engine, total: number): Promise<Sample[]> {
  const traffic = new SoakTraffic(engine);
  const samples: Sample[] = [];
  const every = Math.ceil(total / SAMPLES);
  let started = 0;
  const client = async (): Promise<void> => {
    while (started < total) {
      const number = started++;
      if (number % every === 0) {
        samples.push({ residentBytes: process.memoryUsage.rss(), kvUsage: engine.stats().kvUsage });
      }
      await traffic.request(number);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  samples.push({ residentBytes: process.memoryUsage.rss(), kvUsage: engine.stats().kvUsage });
  return samples;
}

/** The problems found; empty if there are none. */
function findings(engine: Engine, samples: readonly Sample[]): string[] {
  const problems: string[] = [];
  const grown = growth(samples);
  if (grown > ALLOWED_GROWTH) problems.push(`memory grew by ${mebi(grown)} MiB after the warm-up`);
  const { kvUsage, running, waiting, preemptions } = engine.stats();
  if (kvUsage !== 0 || running !== 0 || waiting !== 0) {
    problems.push(`idle, but usage ${kvUsage}, running ${running}, waiting ${waiting}`);
  }
  if (preemptions === 0) problems.push("no request was ever preempted: the cache was not under pressure");
  if (samples.some((sample) => sample.kvUsage > 1)) problems.push("more blocks in use than the budget has");
  return problems;
}

/** After a fifth of warm-up: the growth from the minimum of the next two fifths to the minimum of the last two. */
function growth(samples: readonly Sample[]): number {
  const fifth = samples.length / 5;
  return floorOf(samples, 3 * fifth, 5 * fifth) - floorOf(samples, fifth, 3 * fifth);
}

function floorOf(samples: readonly Sample[], from: number, to: number): number {
  return Math.min(...samples.slice(Math.floor(from), Math.ceil(to)).map((sample) => sample.residentBytes));
}

function print(engine: Engine, samples: readonly Sample[], seconds: number, kvCacheBytes: number): void {
  const { promptTokens, generatedTokens, preemptions, prefixHits, steps } = engine.stats();
  const usage = Math.max(...samples.map((sample) => sample.kvUsage));
  console.log(
    `${requests} requests in ${seconds.toFixed(0)} s: ${promptTokens} prompt tokens, ${prefixHits} of them cached`,
  );
  console.log(`${generatedTokens} tokens generated in ${steps} steps, ${preemptions} preemptions`);
  console.log(
    `cache budget ${mebi(kvCacheBytes)} MiB, at most ${(100 * usage).toFixed(0)} % of it in use when sampled`,
  );
  const fifths = [0, 1, 2, 3, 4].map((i) => floorOf(samples, (i * samples.length) / 5, ((i + 1) * samples.length) / 5));
  console.log(`resident memory, lowest of each fifth of the run: ${fifths.map(mebi).join(", ")} MiB`);
  console.log(`growth after the warm-up ${mebi(growth(samples))} MiB, allowed ${mebi(ALLOWED_GROWTH)} MiB`);
}

function mebi(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
