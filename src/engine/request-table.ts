// The requests in the engine and how they end: they finish, fail, or the caller stops or aborts them. Ending a sequence
// frees all it has at once, and ending the last one of a request frees the request. Collects outputs until the engine
// takes them.

import { BrokenConstraintError, SlowConstraintError } from "../grammar/match/sequence-constraint.ts";
import { NoLegalTokenError } from "../sampling/errors.ts";
import type { SampledToken } from "../sampling/token-logprobs.ts";
import type { EngineOutput, Finish } from "./contract.ts";
import type { Scheduler } from "./scheduler.ts";
import type { RequestState, Sequence } from "./sequence.ts";

/** An output and the request it belongs to. */
export interface RoutedOutput {
  handle: number;
  output: EngineOutput;
}

export class RequestTable {
  /** Unfinished sequences: running, waiting, or held back for a shared prefill. */
  liveSequences = 0;
  readonly #scheduler: Scheduler;
  readonly #onFault: (error: unknown) => void;
  readonly #requests = new Map<number, RequestState>();
  #outputs: RoutedOutput[] = [];

  constructor(scheduler: Scheduler, onFault: (error: unknown) => void) {
    this.#scheduler = scheduler;
    this.#onFault = onFault;
  }

  /** Whether there is something to run or to deliver. */
  get busy(): boolean {
    return this.liveSequences > 0 || this.#outputs.length > 0;
  }

  add(request: RequestState): void {
    this.#requests.set(request.handle, request);
    this.liveSequences += request.live;
    this.#scheduler.add(request.leader);
  }

  /** Ends one choice without further output. Does nothing if it is unknown or finished. */
  stop(handle: number, index: number): void {
    const sequence = this.#requests.get(handle)?.sequences[index];
    if (sequence !== undefined && sequence.state !== "finished") this.#end(sequence);
  }

  /** Ends all choices of a request without further output. */
  abort(handle: number): void {
    const request = this.#requests.get(handle);
    if (request === undefined) return;
    request.followers = []; // so that no follower is queued when the leader ends
    for (const sequence of request.sequences) if (sequence.state !== "finished") this.#end(sequence);
  }

  abortAll(): void {
    for (const handle of [...this.#requests.keys()]) this.abort(handle);
  }

  /** Emits new tokens of a sequence. A finish ends it. */
  emitTokens(sequence: Sequence, tokens: SampledToken[], finish: Finish | null): void {
    const { request, index } = sequence;
    this.emit(request.handle, { type: "tokens", index, tokens, finish });
    if (finish !== null) this.#end(sequence);
  }

  /** Ends the sequence with finish "error". A leader that fails in prefill takes the choices that wait for it along. */
  fail(sequence: Sequence, error: unknown): void {
    const { request } = sequence;
    const doomed = sequence === request.leader && !request.prefilled ? request.followers.splice(0) : [];
    for (const each of [sequence, ...doomed]) this.emitTokens(each, [], errorFinish(error));
  }

  emit(handle: number, output: EngineOutput): void {
    this.#outputs.push({ handle, output });
  }

  usesAdapter(version: string): boolean {
    for (const { request } of this.#requests.values()) if (request.adapter === version) return true;
    return false;
  }

  takeOutputs(): RoutedOutput[] {
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  checkIntegrity(): void {
    let live = 0;
    for (const request of this.#requests.values()) live += request.live;
    if (live !== this.liveSequences) throw new Error(`${this.liveSequences} live sequences counted, ${live} found`);
  }

  #end(sequence: Sequence): void {
    const { request, constraint } = sequence;
    this.#scheduler.finish(sequence);
    try {
      constraint?.dispose();
    } catch (error) {
      this.#onFault(error);
    }
    this.liveSequences--;
    request.live--;
    if (request.live === 0) this.#requests.delete(request.handle);
    else if (!request.prefilled) this.#replaceInPrefill(sequence);
  }

  /** A choice ended before the shared prefill was done. If it was computing it, the next choice takes over. */
  #replaceInPrefill(ended: Sequence): void {
    const { request } = ended;
    request.followers = request.followers.filter((follower) => follower !== ended);
    const next = request.followers[0];
    if (ended !== request.leader || next === undefined) return;
    request.followers.shift();
    request.leader = next;
    request.cachedTokens = null;
    this.#scheduler.add(next);
  }
}

export function errorFinish(error: unknown): Finish {
  const finish: Finish = {
    reason: "error",
    stopReason: null,
    message: error instanceof Error ? error.message : String(error),
  };
  if (error instanceof NoLegalTokenError) return { ...finish, fault: "contradiction" };
  if (error instanceof BrokenConstraintError) return { ...finish, fault: "constraint" };
  if (error instanceof SlowConstraintError) return { ...finish, fault: "slow" };
  return finish;
}
