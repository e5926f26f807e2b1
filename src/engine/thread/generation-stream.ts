// The caller's end of one request: a queue of outputs with an async iterator. It drops the outputs of stopped choices
// and ends when every choice has finished or was stopped. Readers may lag; nothing waits for them.

import type { EngineOutput, Generation } from "../contract.ts";

/** Tells the engine to cancel: index = that choice only, null = the whole request. */
export type Cancel = (index: number | null) => void;

export class GenerationStream implements Generation, AsyncIterator<EngineOutput, undefined> {
  #queue: EngineOutput[] = [];
  readonly #live: Set<number>;
  readonly #cancel: Cancel;
  #wake: (() => void) | null = null;
  #iterated = false;

  constructor(n: number, cancel: Cancel) {
    this.#live = new Set(Array.from({ length: n }, (_, index) => index));
    this.#cancel = cancel;
  }

  /** No more outputs will be accepted. */
  get ended(): boolean {
    return this.#live.size === 0;
  }

  /** Whether the choice still takes outputs. */
  isLive(index: number): boolean {
    return this.#live.has(index);
  }

  push(output: EngineOutput): void {
    if (output.type === "tokens") {
      if (!this.#live.has(output.index)) return;
      if (output.finish !== null) this.#live.delete(output.index);
    } else if (this.ended) {
      return;
    }
    this.#queue.push(output);
    this.#wake?.();
  }

  /** Finishes the open choices with an error. */
  fail(message: string): void {
    for (const index of [...this.#live]) {
      this.push({ type: "tokens", index, tokens: [], finish: { reason: "error", stopReason: null, message } });
    }
  }

  stop(index: number): void {
    this.#queue = this.#queue.filter((output) => output.type !== "tokens" || output.index !== index);
    if (!this.#live.delete(index)) return;
    this.#cancel(this.ended ? null : index);
    this.#wake?.();
  }

  abort(): void {
    const unfinished = !this.ended;
    this.#live.clear();
    this.#queue = [];
    if (unfinished) this.#cancel(null);
    this.#wake?.();
  }

  [Symbol.asyncIterator](): AsyncIterator<EngineOutput, undefined> {
    if (this.#iterated) throw new Error("a generation can be iterated once");
    this.#iterated = true;
    return this;
  }

  async next(): Promise<IteratorResult<EngineOutput, undefined>> {
    while (this.#queue.length === 0) {
      if (this.ended) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    return { done: false, value: this.#queue.shift()! };
  }

  async return(): Promise<IteratorResult<EngineOutput, undefined>> {
    this.abort();
    return { done: true, value: undefined };
  }
}
