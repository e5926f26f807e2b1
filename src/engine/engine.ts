// The step engine: schedule -> forward -> sample -> finish? -> emit -> free, for all requests at once. It is
// single-threaded, and thread/engine-loop.ts drives it: between two `step` calls requests may be submitted, stopped or
// aborted. An error after admission ends one sequence (a failed forward ends those of its step), never the loop.

import type { ConstraintFactory } from "../grammar/match/sequence-constraint.ts";
import type { AdapterHost } from "../model/lora/adapter-host.ts";
import type { Runner } from "../model/runner.ts";
import type { SampledToken } from "../sampling/token-logprobs.ts";
import { KvCache } from "./cache/kv-cache.ts";
import type { EngineStep, Finish, GenerateRequest } from "./contract.ts";
import { TokenSource } from "./next-tokens.ts";
import { errorFinish, RequestTable, type RoutedOutput } from "./request-table.ts";
import { refusal, type ScheduledChunk, Scheduler } from "./scheduler.ts";
import { rankOf, type SchedulingOptions } from "./scheduling.ts";
import { RequestState, type Sequence } from "./sequence.ts";
import type { StatCells } from "./stats.ts";

export interface StepEngineParts {
  runner: Runner;
  /** null = this engine serves no adapters. */
  adapters: AdapterHost | null;
  constraints: ConstraintFactory | null;
  options: SchedulingOptions;
  stats: StatCells;
  /** Milliseconds, monotonic. */
  clock: () => number;
  /** Called with errors that belong to no request. */
  onFault: (error: unknown) => void;
}

export class StepEngine {
  readonly #parts: StepEngineParts;
  readonly #kv: KvCache;
  readonly #scheduler: Scheduler;
  readonly #table: RequestTable;
  readonly #source: TokenSource;
  /** Sequences that sit out steps until their constraints are ready. */
  readonly #held = new Set<Sequence>();
  #arrivals = 0;
  /** Tokens this step has produced: those it generated, and the computed part of the prompts it completed. */
  #stepTokens = 0;

  constructor(parts: StepEngineParts) {
    const { runner, options, stats, clock } = parts;
    this.#parts = parts;
    this.#kv = new KvCache(runner, options);
    this.#scheduler = new Scheduler(this.#kv, runner.vocabSize, options, stats, clock);
    this.#table = new RequestTable(this.#scheduler, parts.onFault);
    this.#source = new TokenSource(runner.vocabSize, parts.constraints);
  }

  /** Whether there is something to run or to deliver. */
  get busy(): boolean {
    return this.#table.busy;
  }

  /** Queues a request. A refused one answers with finish "error" for every choice. */
  submit(handle: number, request: GenerateRequest): void {
    const { runner, options, clock } = this.#parts;
    const problem = refusal(request, runner);
    const adapterSlot = problem === null ? this.#slotOf(request.adapter) : null;
    if (adapterSlot === null) {
      const unloaded = { ...errorFinish(`adapter ${request.adapter} is not loaded`), fault: "unloaded" } as const;
      const finish = problem === null ? unloaded : errorFinish(problem);
      for (let index = 0; index < request.n; index++) {
        this.#table.emit(handle, { type: "tokens", index, tokens: [], finish });
      }
      return;
    }
    const submittedAt = clock();
    const rank = rankOf(request.priority, submittedAt, options);
    const arrival = this.#arrivals;
    this.#arrivals += request.n;
    this.#table.add(new RequestState({ handle, request, adapterSlot, rank, arrival, submittedAt }));
    this.#updateGauges();
  }

  /** Ends one choice without further output. Does nothing if it is unknown or finished. */
  stop(handle: number, index: number): void {
    this.#table.stop(handle, index);
    this.#updateGauges();
  }

  /** Ends all choices of a request without further output. */
  abort(handle: number): void {
    this.#table.abort(handle);
    this.#updateGauges();
  }

  abortAll(): void {
    this.#table.abortAll();
    this.#updateGauges();
  }

  /** Whether a request is on this adapter: its slot must not change then. */
  usesAdapter(version: string): boolean {
    return this.#table.usesAdapter(version);
  }

  /** Runs one step of everything that can run. Resolves to the outputs since the last step. */
  async step(): Promise<RoutedOutput[]> {
    this.#stepTokens = 0;
    this.#resumeHeld();
    const batch = this.#scheduler.schedule().filter(({ sequence }) => this.#prepare(sequence));
    if (batch.length > 0) {
      const logits = await this.#forward(batch);
      for (let i = 0; i < logits.length; i++) this.#advance(batch[i]!, logits[i]!);
      this.#parts.stats.addStep(this.#stepTokens, stepOf(batch));
    }
    this.#updateGauges();
    return this.#table.takeOutputs();
  }

  checkIntegrity(): void {
    this.#scheduler.checkIntegrity();
    this.#table.checkIntegrity();
  }

  /** Logits per chunk. Empty when the model failed, which ends the whole batch. */
  async #forward(batch: readonly ScheduledChunk[]): Promise<Float32Array[]> {
    try {
      return await this.#parts.runner.forward(batch.map(({ chunk }) => chunk));
    } catch (error) {
      for (const { sequence } of batch) this.#table.fail(sequence, error);
      return [];
    }
  }

  /** Takes in a chunk that the model has run. `rows`: its logits, [rows asked for, vocab]. */
  #advance(scheduled: ScheduledChunk, rows: Float32Array): void {
    const { sequence, chunk, end } = scheduled;
    this.#scheduler.commit(scheduled);
    if (chunk.logits === "all" && !this.#describePrompt(scheduled, rows)) return;
    if (end < sequence.tokens.length) return;
    const row = rows.subarray(rows.length - this.#parts.runner.vocabSize);
    const forked = sequence.request.prefilled ? [] : this.#completePrefill(sequence);
    this.#extend(sequence, row);
    for (const follower of forked) if (this.#prepare(follower)) this.#extend(follower, row);
  }

  /** Emits the prefill output; returns the choices that now share the leader's blocks and logits. */
  #completePrefill(leader: Sequence): Sequence[] {
    const { request } = leader;
    const { stats } = this.#parts;
    request.prefilled = true;
    stats.add("promptTokens", request.prompt.length);
    this.#stepTokens += request.prompt.length - (request.cachedTokens ?? 0);
    this.#table.emit(request.handle, {
      type: "prefill",
      cachedTokens: request.cachedTokens ?? 0,
      promptLogprobs: request.promptLogprobs,
      ...(request.preferences === null ? {} : { preferences: request.preferences }),
      queuedMs: request.startedAt - request.submittedAt,
    });
    return request.followers.splice(0).filter((follower) => this.#scheduler.fork(leader, follower));
  }

  #resumeHeld(): void {
    for (const sequence of this.#held) {
      const { state, pending, heldLogits } = sequence;
      this.#held.delete(sequence);
      sequence.heldLogits = null;
      // One that was preempted meanwhile computes its logits again.
      if (state === "running" && pending === 0) this.#extend(sequence, heldLogits!);
    }
  }

  /** Without a mask, the sequence and its logits wait for the next step. */
  #extend(sequence: Sequence, row: Float32Array): void {
    const tokens: SampledToken[] = [];
    let finish: Finish | null;
    try {
      if (sequence.constraint?.ready() === false) {
        sequence.heldLogits = row.slice();
        this.#held.add(sequence);
        return;
      }
      finish = this.#source.extend(sequence, row, tokens);
    } catch (error) {
      finish = errorFinish(error);
    }
    for (const { id } of tokens) sequence.tokens.push(id);
    this.#parts.stats.add("generatedTokens", tokens.length);
    this.#stepTokens += tokens.length;
    this.#table.emitTokens(sequence, tokens, finish);
  }

  /** False if the sequence could not be prepared and has ended. */
  #prepare(sequence: Sequence): boolean {
    return this.#attempt(sequence, () => this.#source.prepare(sequence));
  }

  /** False if the logits were not a distribution, which has ended the sequence. */
  #describePrompt(scheduled: ScheduledChunk, rows: Float32Array): boolean {
    return this.#attempt(scheduled.sequence, () => this.#source.describePrompt(scheduled, rows));
  }

  #attempt(sequence: Sequence, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.#table.fail(sequence, error);
      return false;
    }
  }

  /** 0 = the base model; null = the adapter is not loaded. */
  #slotOf(adapter: string | null): number | null {
    return adapter === null ? 0 : (this.#parts.adapters?.slotOf(adapter) ?? null);
  }

  #updateGauges(): void {
    const { stats } = this.#parts;
    stats.set("running", this.#scheduler.runningCount);
    stats.set("waiting", this.#table.liveSequences - this.#scheduler.runningCount);
    stats.set("kvUsage", this.#kv.usage);
  }
}

/** Past its prompt, a chunk is the last token of a sequence, which gets the next one. */
function stepOf(batch: readonly ScheduledChunk[]): EngineStep {
  const step = { at: Date.now(), decode: 0, prefill: 0 };
  for (const { sequence, chunk } of batch) {
    if (chunk.start >= sequence.request.prompt.length) step.decode++;
    else step.prefill += chunk.tokens.length;
  }
  return step;
}
