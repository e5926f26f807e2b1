// One round: all engines of one precision, each in its own process, take turns at every cell, so that a disturbance hits all
// of them. Only one computes at a time. An engine that fails sits out the rest of the round, and its reason is recorded.

import { setTimeout as delay } from "node:timers/promises";
import type { Contender, ContenderOptions } from "./contenders/contender.ts";
import { Random } from "./models/random.ts";
import { type Cell, cellName, type EngineName, type Entrant, entrantLabel, lapsOf, type Plan } from "./plan.ts";
import type { Memory } from "./process/child-messages.ts";
import { type Remote, startRemote } from "./process/remote.ts";
import type { Lap } from "./process/stopwatch.ts";

export interface EntrantResult {
  entrant: Entrant;
  /** Keyed by cell name. */
  laps: Map<string, Lap[]>;
  scores: number[];
  greedy: number[];
  /** Memory after the prefill cells and at the end of the round. */
  afterPrefill: Memory;
  atEnd: Memory;
  /** Why it did not finish; null if it did. */
  failure: string | null;
}

export interface RoundOptions {
  plan: Plan;
  vocab: number;
  /** Path of the model in the engine's format. */
  modelOf(entrant: Entrant): string;
  log(line: string): void;
  /** Called before every repetition of a cell, so that probes take turns too. */
  between(cell: Cell): Promise<void>;
}

const MODULES: Readonly<Record<EngineName, string>> = {
  flywheel: "./contenders/flywheel.js",
  "llama.cpp": "./contenders/llama-cpp.js",
  "transformers.js": "./contenders/transformers-js.js",
  "llama-batched-bench": "./contenders/llama-batched-bench.js",
  ollama: "./contenders/ollama.js",
};

/** A text of random ids, whose log-probabilities and continuation are compared between engines. */
const SCORED_TOKENS = 96;
const GREEDY_TOKENS = 16;

/** The previous engine's threads may still spin for a while and would share the cores with a short lap. */
const SETTLE_MS = 250;

interface Running {
  result: EntrantResult;
  remote: Remote<Contender>;
}

export async function runRound(entrants: readonly Entrant[], options: RoundOptions): Promise<EntrantResult[]> {
  const results: EntrantResult[] = [];
  let running: Running[] = [];
  const attempt = async (each: Running, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      running = running.filter((other) => other !== each);
      each.result.failure = (error as Error).message;
      options.log(`${entrantLabel(each.result.entrant)} failed: ${each.result.failure}`);
      await each.remote.stop();
    }
  };
  try {
    for (const entrant of entrants) {
      const result = emptyResult(entrant);
      results.push(result);
      const remote = await start(entrant, options).catch((error: Error) => {
        result.failure = error.message;
        options.log(`${entrantLabel(entrant)} did not start: ${error.message}`);
        return null;
      });
      if (remote !== null) running.push({ result, remote });
    }
    const sample = new Random(5).tokens(SCORED_TOKENS, options.vocab);
    for (const each of running) {
      await attempt(each, async () => {
        each.result.scores = await each.remote.object.score(sample);
        each.result.greedy = await each.remote.object.greedy(sample, GREEDY_TOKENS);
      });
    }
    for (const cell of options.plan.cells) {
      const prompt = new Random(7).tokens(cell.kind === "prefill" ? cell.tokens : cell.past, options.vocab);
      for (const each of running) await attempt(each, () => prepare(each.remote.object, cell, prompt));
      for (let left = lapsOf(options.plan, cell); left > 0; left--) {
        await delay(SETTLE_MS);
        await options.between(cell);
        for (const each of running) {
          await attempt(each, async () => {
            await delay(SETTLE_MS);
            const lap = await measure(each.remote.object, cell, prompt);
            const laps = each.result.laps.get(cellName(cell)) ?? [];
            each.result.laps.set(cellName(cell), [...laps, lap]);
          });
        }
      }
      for (const each of running) {
        await attempt(each, () => finish(each.remote.object, cell));
        each.result.atEnd = each.remote.memory();
        if (cell.kind === "prefill") each.result.afterPrefill = each.remote.memory();
      }
      options.log(`${cellName(cell)}: ${running.map(({ result }) => summary(result, cell)).join(" · ")}`);
    }
  } finally {
    for (const { remote } of running) await remote.stop();
  }
  return results;
}

function emptyResult(entrant: Entrant): EntrantResult {
  const memory: Memory = { residentBytes: 0, peakBytes: 0 };
  const measured = { laps: new Map(), scores: [], greedy: [], afterPrefill: memory, atEnd: memory };
  return { entrant, ...measured, failure: null };
}

function start(entrant: Entrant, { plan, modelOf }: RoundOptions): Promise<Remote<Contender>> {
  const decodes = plan.cells.filter((cell) => cell.kind === "decode");
  const held = decodes.map(({ past, batch, steps }) => batch * (past + steps + 2));
  const prefills = plan.cells.filter((cell) => cell.kind === "prefill").map((cell) => cell.tokens + 1);
  const contender: ContenderOptions = {
    model: modelOf(entrant),
    precision: entrant.precision,
    threads: plan.threads,
    totalTokens: Math.max(...held, ...prefills, SCORED_TOKENS + GREEDY_TOKENS),
    ...entrant.settings,
  };
  return startRemote<Contender>(new URL(MODULES[entrant.engine], import.meta.url), contender);
}

async function prepare(contender: Contender, cell: Cell, prompt: number[]): Promise<void> {
  if (cell.kind === "decode") await contender.prepareDecode(prompt, cell.batch, cell.steps);
  else await contender.prefill(prompt);
}

function measure(contender: Contender, cell: Cell, prompt: number[]): Promise<Lap> {
  return cell.kind === "decode" ? contender.decode() : contender.prefill(prompt);
}

async function finish(contender: Contender, cell: Cell): Promise<void> {
  if (cell.kind === "decode") await contender.finishDecode();
}

function summary({ entrant, laps }: EntrantResult, cell: Cell): string {
  const speeds = (laps.get(cellName(cell)) ?? []).map(({ tokens, seconds }) => Math.round(tokens / seconds));
  return `${entrantLabel(entrant)} ${speeds.join("/")}`;
}
