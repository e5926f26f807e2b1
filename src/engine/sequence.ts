// One choice of one request: its tokens, how many of them the model has seen, the blocks that hold their keys and
// values, and its state. All state changes go through `transition`. The scheduler decides who may run.

import type { SequenceConstraint } from "../grammar/match/sequence-constraint.ts";
import type { SequenceSampler } from "../sampling/sampler.ts";
import { IntList } from "./int-list.ts";
import type { RequestState } from "./request-state.ts";

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

/** Negative when `a` goes first: rank, then arrival, then choice index. A total order that never changes. */
export function compareSequences(a: Sequence, b: Sequence): number {
  return a.request.rank - b.request.rank || a.request.arrival - b.request.arrival || a.index - b.index;
}
