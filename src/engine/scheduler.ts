// Continuous batching: decides before every step which sequences run and which tokens of each. Sequences that decode
// always run. The rest of the token budget goes to prefill chunks, first of running sequences, then of newly admitted
// ones. When blocks run out, the worst running sequence is preempted: it gives all its blocks back and recomputes its
// tokens later. This file only decides; engine.ts runs the model, samples and emits.

import type { Chunk, Runner } from "../model/runner.ts";
import type { KvCache } from "./cache/kv-cache.ts";
import type { GenerateRequest } from "./contract.ts";
import type { SchedulingOptions } from "./scheduling.ts";
import { compareSequences, type Sequence } from "./sequence.ts";
import type { StatCells } from "./stats.ts";

// Sequences that wait to run, best first (see compareSequences). A sorted array with the best at the end: taking is
// O(1), adding and removing O(log n) comparisons plus a memmove, which takes microseconds for thousands of entries.
class WaitingQueue {
  /** Worst first. */
  readonly #sorted: Sequence[] = [];

  add(sequence: Sequence): void {
    this.#sorted.splice(this.#position(sequence), 0, sequence);
  }

  best(): Sequence | undefined {
    return this.#sorted.at(-1);
  }

  /** True if it was waiting. */
  remove(sequence: Sequence): boolean {
    const at = this.#position(sequence);
    if (this.#sorted[at] !== sequence) return false;
    this.#sorted.splice(at, 1);
    return true;
  }

  values(): Iterable<Sequence> {
    return this.#sorted;
  }

  /** Index of the first element that does not go after `sequence`. */
  #position(sequence: Sequence): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareSequences(this.#sorted[middle]!, sequence) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

// The last check before a request enters the engine. The edge has refused bad requests with a clear message long
// before. This check stops anything that slipped through from reaching native code or waiting for room that can never
// exist.

/** What decides whether a request can run at all. */
export type Room = Pick<Runner, "vocabSize" | "maxPositions" | "positionsPerBlock" | "numBlocks">;

/** The longest prompt plus output that the model and the pool can hold. */
export function maxModelLen(runner: Room): number {
  return Math.min(runner.maxPositions, runner.numBlocks * runner.positionsPerBlock);
}

/** Why this request cannot run, or null. */
export function refusal(request: GenerateRequest, runner: Room): string | null {
  const { promptTokenIds, sampling, legalSets } = request;
  if (sampling.maxTokens < 1) return `maxTokens must be at least 1, got ${sampling.maxTokens}`;
  if (promptTokenIds.length === 0) return "the prompt is empty";
  const total = promptTokenIds.length + sampling.maxTokens;
  const limit = maxModelLen(runner);
  if (total > limit) {
    return `${promptTokenIds.length} prompt tokens plus ${sampling.maxTokens} output tokens exceed the ${limit} that fit`;
  }
  if ((legalSets?.length ?? 0) >= promptTokenIds.length) return "the legal sets leave no prompt before them";
  for (const id of promptTokenIds) {
    if (!(Number.isInteger(id) && id >= 0 && id < runner.vocabSize)) {
      return `prompt token ${id} is outside the vocabulary of ${runner.vocabSize}`;
    }
  }
  return null;
}

export interface ScheduledChunk {
  sequence: Sequence;
  chunk: Chunk;
  /** Known tokens of the sequence the model will have seen afterwards. */
  end: number;
}

/** Most logits of one chunk (64 MiB of float32) when all its rows are wanted. */
const MAX_LOGITS = 1 << 24;

/** Fewer forced tokens than this go one per step beside the sequences that decode: a chunk costs a model run of its own. */
const WORTH_A_RUN = 8;

export class Scheduler {
  readonly #kv: KvCache;
  readonly #options: SchedulingOptions;
  readonly #stats: StatCells;
  readonly #clock: () => number;
  /** Best first. */
  readonly #running: Sequence[] = [];
  readonly #waiting = new WaitingQueue();
  /** Rows of one chunk when all its logits are wanted: a multiple of `positionsPerBlock`. */
  readonly #maxRows: number;

  constructor(kv: KvCache, vocabSize: number, options: SchedulingOptions, stats: StatCells, clock: () => number) {
    this.#kv = kv;
    this.#options = options;
    this.#stats = stats;
    this.#clock = clock;
    this.#maxRows = Math.max(kv.positionsPerBlock, this.#floorToBlock(MAX_LOGITS / vocabSize));
  }

  get runningCount(): number {
    return this.#running.length;
  }

  add(sequence: Sequence): void {
    this.#waiting.add(sequence);
  }

  /** Chunks of the next step; empty only when nothing runs and nothing waits. */
  schedule(): ScheduledChunk[] {
    const preempted = this.#secureBlocks();
    const batch: ScheduledChunk[] = [];
    for (const sequence of this.#running) {
      if (sequence.pending === 1) batch.push(this.#upTo(sequence, sequence.tokens.length));
    }
    const alone = batch.length === 0;
    const { maxNumBatchedTokens, maxNumPromptTokens } = this.#options;
    let budget = Math.max(
      this.#kv.positionsPerBlock,
      (alone ? maxNumPromptTokens : maxNumBatchedTokens) - batch.length,
    );
    const give = (sequence: Sequence): void => {
      const oneByOne = !alone && sequence.decodes && sequence.pending < WORTH_A_RUN;
      const scheduled = oneByOne ? this.#upTo(sequence, sequence.computed + 1) : this.#chunk(sequence, budget);
      if (scheduled === null) return;
      budget -= scheduled.chunk.tokens.length;
      batch.push(scheduled);
    };
    for (const sequence of this.#running) {
      if (sequence.pending > 1) give(sequence);
    }
    // Nobody is admitted in a step with a preemption: a newcomer would take the blocks just freed.
    while (!preempted && budget >= this.#kv.positionsPerBlock) {
      const sequence = this.#admit();
      if (sequence === null) break;
      give(sequence);
    }
    return batch;
  }

  /** The step ran: the chunk's positions are in the blocks. */
  commit({ sequence, end }: ScheduledChunk): void {
    sequence.computed = end;
    this.#kv.commit(sequence);
  }

  /**
   * Let `follower` share the prefill that `leader` has just completed. Without room for a copy it queues up like any
   * other sequence and computes its prompt itself (mostly prefix-cache hits): same tokens, a little later.
   */
  fork(leader: Sequence, follower: Sequence): boolean {
    if (!this.#hasRoomFor(follower)) {
      this.#waiting.add(follower);
      return false;
    }
    follower.apply("schedule");
    this.#kv.fork(leader, follower);
    this.#insertRunning(follower);
    return true;
  }

  /** Remove a sequence in any state and free what it holds. */
  finish(sequence: Sequence): void {
    if (sequence.state === "running") {
      this.#running.splice(this.#running.indexOf(sequence), 1);
      this.#kv.release(sequence);
    } else {
      this.#waiting.remove(sequence);
    }
    sequence.apply("finish");
  }

  checkIntegrity(): void {
    this.#kv.checkIntegrity(this.#running);
    for (const [i, sequence] of this.#running.entries()) {
      if (sequence.state !== "running") throw new Error(`a ${sequence.state} sequence is in the running list`);
      const next = this.#running[i + 1];
      if (next !== undefined && compareSequences(sequence, next) >= 0) throw new Error("running list out of order");
    }
    for (const sequence of this.#waiting.values()) {
      if (sequence.state !== "waiting" && sequence.state !== "preempted") {
        throw new Error(`a ${sequence.state} sequence is in the waiting queue`);
      }
      if (sequence.blocks.length > 0) throw new Error("a waiting sequence holds blocks");
    }
  }

  /** Makes room for the known tokens of every running sequence, best first. Preempts the worst while there is none. */
  #secureBlocks(): boolean {
    let preempted = false;
    for (let i = 0; i < this.#running.length; i++) {
      // Victims come from the end, never from before i.
      while (i < this.#running.length && !this.#kv.grow(this.#running[i]!)) {
        const victim = this.#running.pop()!;
        this.#kv.release(victim);
        victim.apply("preempt");
        this.#waiting.add(victim);
        this.#stats.add("preemptions", 1);
        preempted = true;
      }
    }
    return preempted;
  }

  /** Move the best waiting sequence to the running ones if it fits; only ever the best, so big ones do not starve. */
  #admit(): Sequence | null {
    const sequence = this.#waiting.best();
    if (sequence === undefined || !this.#hasRoomFor(sequence)) return null;
    this.#waiting.remove(sequence);
    sequence.apply("schedule");
    const { request } = sequence;
    const reused = this.#kv.attach(sequence, request.firstRow);
    this.#insertRunning(sequence);
    if (request.cachedTokens === null) {
      request.cachedTokens = reused;
      request.startedAt = this.#clock();
      this.#stats.add("prefixQueries", request.prompt.length);
      this.#stats.add("prefixHits", reused);
    }
    return sequence;
  }

  /** One spare block per running sequence keeps a newcomer from being preempted in its first steps. */
  #hasRoomFor(sequence: Sequence): boolean {
    const needed = this.#kv.blocksFor(sequence.tokens.length) + this.#running.length;
    return this.#running.length < this.#options.maxNumSeqs && needed <= this.#kv.available;
  }

  #insertRunning(sequence: Sequence): void {
    let at = this.#running.length;
    while (at > 0 && compareSequences(this.#running[at - 1]!, sequence) > 0) at--;
    this.#running.splice(at, 0, sequence);
  }

  /** The next chunk of at most `budget` tokens. A chunk that leaves a rest ends where a block ends; null if none fits. */
  #chunk(sequence: Sequence, budget: number): ScheduledChunk | null {
    const { tokens, computed, pending, request } = sequence;
    const limit = computed + budget > request.firstRow ? Math.min(budget, this.#maxRows) : budget;
    const end = pending <= limit ? tokens.length : this.#floorToBlock(computed + limit);
    return end <= computed ? null : this.#upTo(sequence, end);
  }

  #upTo(sequence: Sequence, end: number): ScheduledChunk {
    const { tokens, blocks, computed: start, request } = sequence;
    const chunk: Chunk = {
      tokens: tokens.view(start, end),
      start,
      blocks: blocks.view(0, this.#kv.blocksFor(end)),
      adapterSlot: request.adapterSlot,
      logits: end > request.firstRow ? "all" : end === tokens.length ? "last" : "none",
    };
    return { sequence, chunk, end };
  }

  #floorToBlock(tokens: number): number {
    return Math.floor(tokens / this.#kv.positionsPerBlock) * this.#kv.positionsPerBlock;
  }
}
