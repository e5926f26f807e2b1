// What the choices of one request share: the prompt, the place in the queue, the result of the prefill. It has no
// behaviour of its own; the engine and the scheduler change it.

import type { TokenLogprobs } from "../sampling/token-logprobs.ts";
import { cacheRoot } from "./cache/prefix-cache.ts";
import type { GenerateRequest } from "./contract.ts";
import { Sequence } from "./sequence.ts";

interface Admission {
  /** The client's number for this request; unique while it lives. */
  handle: number;
  request: GenerateRequest;
  adapterSlot: number;
  /** Smaller runs earlier: `rankOf` in scheduling.ts. */
  rank: number;
  /** Breaks ties of rank. The sequences are numbered arrival .. arrival + n - 1. */
  arrival: number;
  /** Clock reading in milliseconds. */
  submittedAt: number;
}

export class RequestState {
  readonly handle: number;
  readonly request: GenerateRequest;
  readonly prompt: Int32Array;
  readonly rank: number;
  readonly arrival: number;
  readonly adapterSlot: number;
  /** Parent digest of the first link: adapter version and salt. */
  readonly cacheRoot: string;
  /** By choice index. */
  readonly sequences: readonly Sequence[];
  /** The choice that computes the prompt for all. */
  leader: Sequence;
  /** Choices that wait for the leader's prefill. They are in no queue. */
  followers: Sequence[];
  /** Choices not yet finished. */
  live: number;
  /** True once the prompt has been computed and the prefill output emitted. */
  prefilled = false;
  /** Prompt tokens taken from the prefix cache when the leader first ran; null before. */
  cachedTokens: number | null = null;
  /** Filled during prefill; null when not asked for. Element 0 stays null. */
  readonly promptLogprobs: (TokenLogprobs | null)[] | null;
  readonly submittedAt: number;
  /** Clock reading when the leader first ran. */
  startedAt: number;

  constructor({ handle, request, adapterSlot, rank, arrival, submittedAt }: Admission) {
    this.handle = handle;
    this.request = request;
    this.prompt = Int32Array.from(request.promptTokenIds);
    this.rank = rank;
    this.arrival = arrival;
    this.adapterSlot = adapterSlot;
    this.cacheRoot = cacheRoot(request.adapter, request.cacheSalt);
    this.sequences = Array.from({ length: request.n }, (_, index) => new Sequence(arrival + index, this, index));
    this.leader = this.sequences[0]!;
    this.followers = this.sequences.slice(1);
    this.live = request.n;
    this.promptLogprobs = request.sampling.promptLogprobs === null ? null : new Array(this.prompt.length).fill(null);
    this.submittedAt = submittedAt;
    this.startedAt = submittedAt;
  }

  /** Whether prompt log-probabilities are missing, so that every prompt position must go through the model. */
  get needsEveryPromptRow(): boolean {
    return this.promptLogprobs !== null && !this.prefilled;
  }
}
