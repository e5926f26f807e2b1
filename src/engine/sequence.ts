// A request inside the engine and its choices, which refer to each other. A `Sequence` is one choice: its tokens, how
// many of them the model has seen, the blocks that hold their keys and values, and its state. All state changes go
// through `transition`; the scheduler decides who may run. A `RequestState` is what the choices of a request share: the
// prompt, the place in the queue, the result of the prefill. The engine and the request table change it.
import type { SequenceConstraint } from "../grammar/match/sequence-constraint.ts";
import type { SequenceSampler } from "../sampling/sampler.ts";
import type { Preference, TokenLogprobs } from "../sampling/token-logprobs.ts";
import { cacheRoot } from "./cache/prefix-cache.ts";
import type { GenerateRequest } from "./contract.ts";

// A growing list of 32-bit integers for token histories and block tables. It returns views instead of copies. The
// initial array is shared with the caller and copied on the first push, so a thousand choices of one request share one
// prompt. A list never shrinks; `clear` is only for lists that started empty.

const EMPTY = new Int32Array(0);

export class IntList {
  #buffer: Int32Array;
  length: number;

  constructor(initial: Int32Array = EMPTY) {
    this.#buffer = initial;
    this.length = initial.length;
  }

  push(value: number): void {
    if (this.length === this.#buffer.length) {
      const grown = new Int32Array(Math.max(16, this.length + (this.length >> 1)));
      grown.set(this.#buffer);
      this.#buffer = grown;
    }
    this.#buffer[this.length++] = value;
  }

  at(index: number): number {
    if (index < 0 || index >= this.length) throw new RangeError(`index ${index} outside a list of ${this.length}`);
    return this.#buffer[index]!;
  }

  /** Elements from .. to - 1, valid until the next push. */
  view(from: number, to: number): Int32Array {
    return this.#buffer.subarray(from, Math.min(to, this.length));
  }

  clear(): void {
    this.length = 0;
  }
}

export type SequenceState = "waiting" | "running" | "preempted" | "finished";
export type SequenceEvent = "schedule" | "preempt" | "finish";

const TRANSITIONS: Record<SequenceState, Partial<Record<SequenceEvent, SequenceState>>> = {
  waiting: { schedule: "running", finish: "finished" },
  running: { preempt: "preempted", finish: "finished" },
  preempted: { schedule: "running", finish: "finished" },
  finished: {},
};

/** The state after `event`. Throws if the state does not allow the event, which is a bug in the scheduler. */
export function transition(state: SequenceState, event: SequenceEvent): SequenceState {
  const next = TRANSITIONS[state][event];
  if (next === undefined) throw new Error(`a ${state} sequence cannot ${event}`);
  return next;
}

export class Sequence {
  /** Unique in its engine; names the owner of a block. */
  readonly number: number;
  readonly request: RequestState;
  /** Which choice of the request. */
  readonly index: number;
  /** Prompt, then output. */
  readonly tokens: IntList;
  /** Tokens whose keys and values are in the blocks: positions 0 .. computed - 1. */
  computed = 0;
  /** Physical blocks in order of position. Empty unless running. */
  readonly blocks = new IntList();
  /** Prefix-cache digests of the full links known so far; digests[i] is about link i. */
  digests: string[] = [];
  /** Made when the sequence first runs; they survive preemption, so the output continues as if undisturbed. */
  sampler: SequenceSampler | null = null;
  constraint: SequenceConstraint | null = null;
  /** The logits of the next token, while its constraint still works on the mask. [vocab] */
  heldLogits: Float32Array | null = null;
  #current: SequenceState = "waiting";

  constructor(number: number, request: RequestState, index: number) {
    this.number = number;
    this.request = request;
    this.index = index;
    this.tokens = new IntList(request.prompt);
  }

  get state(): SequenceState {
    return this.#current;
  }

  apply(event: SequenceEvent): void {
    this.#current = transition(this.#current, event);
  }

  /** Its prompt is computed. */
  get decodes(): boolean {
    return this.computed >= this.request.prompt.length;
  }

  /** Known tokens the model has not seen: 1 in steady decoding, more while prefilling or after forced tokens. */
  get pending(): number {
    return this.tokens.length - this.computed;
  }
}

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
  /** The same for what was asked with `legalSets`; null when nothing was. */
  readonly preferences: Preference[] | null;
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
    this.preferences = request.legalSets === null ? null : [];
    this.submittedAt = submittedAt;
    this.startedAt = submittedAt;
  }

  /**
   * The first position of the prompt whose logits are asked for: from there on, each must go through the model. Infinity =
   * only the last one's are needed.
   */
  get firstRow(): number {
    if (this.prefilled) return Number.POSITIVE_INFINITY;
    if (this.promptLogprobs !== null) return 0;
    const { legalSets } = this.request;
    return legalSets === null ? Number.POSITIVE_INFINITY : this.prompt.length - legalSets.length - 1;
  }
}

/** Negative when `a` goes first: rank, then arrival, then choice index. A total order that never changes. */
export function compareSequences(a: Sequence, b: Sequence): number {
  return a.request.rank - b.request.rank || a.request.arrival - b.request.arrival || a.index - b.index;
}
