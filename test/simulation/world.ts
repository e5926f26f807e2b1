// The simulated world: one clock, one queue of events, and processes that live, pause and die in it. An event belongs to
// a process. All that its code does until it waits again happens at that moment, so the seed alone decides what follows
// what. Whoever is dead hears of nothing any more.

import { createHash } from "node:crypto";
import { Chance } from "../cluster/chance.ts";

/** A server, an engine, the database, a client: whatever can stop without the others. */
export class Process {
  readonly name: string;
  alive = true;
  /** Nothing of it runs before. */
  #pausedUntil = 0;
  /** What its clock is off, in milliseconds. */
  skewMs = 0;
  readonly #deaths = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** Never ends a pause early: what waits for its end would come after what is new. */
  pause(until: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, until);
  }

  /** Called once, when it dies, unless the returned function was called. */
  onDeath(heard: () => void): () => void {
    this.#deaths.add(heard);
    return () => this.#deaths.delete(heard);
  }

  die(): void {
    if (!this.alive) return;
    this.alive = false;
    for (const heard of this.#deaths) heard();
    this.#deaths.clear();
  }
}

/** Thrown by calls of a process that has died in the middle of its code. Nothing it does has an effect any more. */
export class Died extends Error {
  constructor(process: Process) {
    super(`${process.name} has died`);
  }
}

export interface Scheduled {
  time: number;
  /** When it was due first: what was due earlier happens first when a paused process goes on. */
  readonly due: number;
  readonly number: number;
  readonly process: Process;
  readonly label: string;
  run: (() => void) | null;
}

/** 2026-01-01 */
const START = 1_767_225_600_000;
const KEPT_LINES = 4_000;

/** Node's own, whatever a stage puts in its place later. */
export const nextTurn = setImmediate;

export class World {
  readonly seed: number;
  readonly chance: Chance;
  /** Milliseconds since 1970. */
  now = START;
  /** The process whose code runs. */
  current: Process;
  /** The world itself: what no process does. */
  readonly outside = new Process("world");
  events = 0;
  /** Faults by kind. */
  readonly faults = new Map<string, number>();
  readonly wrong: string[] = [];
  /** How often the code under test did what it rarely does. */
  readonly reached = new Map<string, number>();
  /** While false, nothing fails. */
  isFaulty = true;
  /** Of each call of a process that may die, how likely it dies there. */
  deathRate = 0;
  /** Processes that may die at any call. */
  readonly mortal = new Set<Process>();
  readonly lines: string[] = [];
  readonly #heap: Scheduled[] = [];
  readonly #hash = createHash("sha256");
  #numbers = 0;

  constructor(seed: number) {
    this.seed = seed;
    this.chance = new Chance(seed);
    this.current = this.outside;
  }

  /** Milliseconds since the beginning. */
  get elapsed(): number {
    return this.now - START;
  }

  /** `run` happens in `process` after so many milliseconds, unless it is dead by then. */
  at(process: Process, ms: number, label: string, run: () => void): Scheduled {
    const time = this.now + Math.max(0, ms);
    const event = { time, due: time, number: this.#numbers++, process, label, run };
    this.#push(event);
    return event;
  }

  /** A pause in the current process. */
  pause(ms: number, label: string): Promise<void> {
    return new Promise((resolve) => this.at(this.current, ms, label, resolve));
  }

  /** True with this probability, while things may fail. */
  fails(rate: number): boolean {
    return rate > 0 && this.isFaulty && this.chance.between(1, 1_000_000) <= rate * 1_000_000;
  }

  reach(what: string, times = 1): void {
    if (times > 0) this.reached.set(what, (this.reached.get(what) ?? 0) + times);
  }

  count(fault: string, about = ""): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
    this.say(`fault: ${fault}${about && ` ${about}`}`);
  }

  /** Whether the current process dies at this call. */
  diesHere(call: string): boolean {
    const { current } = this;
    if (!current.alive || !this.mortal.has(current) || !this.fails(this.deathRate)) return false;
    this.count("death at a call", `${current.name} at ${call}`);
    current.die();
    return true;
  }

  /** For the log of this run, and for its hash. */
  say(line: string): void {
    const text = `${(this.elapsed / 1000).toFixed(3)} ${this.current.name}: ${line}`;
    // the stack of an error has the caller of the simulation in it
    this.#hash.update(text.replace(/(\\n|\n) +at .*/s, ""));
    this.lines.push(text);
    if (this.lines.length > 2 * KEPT_LINES) this.lines.splice(0, KEPT_LINES);
  }

  violation(what: string): void {
    this.say(`WRONG: ${what}`);
    this.wrong.push(what);
  }

  /** What happened, in 16 hexadecimal digits. */
  get digest(): string {
    return this.#hash.copy().digest("hex").slice(0, 16);
  }

  /** Lets things happen until `done`. Returns false if nothing is left to happen, or time is over. */
  async run(done: () => boolean, untilMs: number): Promise<boolean> {
    while (!done()) {
      const event = this.#heap[0];
      if (event === undefined || event.time > START + untilMs) return false;
      this.#pop();
      const { process, run } = event;
      if (run === null || !process.alive) continue;
      if (process.pausedUntil > this.now && process.pausedUntil > event.time) {
        event.time = process.pausedUntil;
        this.#push(event);
        continue;
      }
      this.now = Math.max(this.now, event.time);
      this.current = process;
      this.events++;
      this.#hash.update(`${event.time} ${process.name} ${event.label}\n`);
      try {
        run();
      } catch (error) {
        this.unheard(error);
      }
      // until its code waits for another event
      await new Promise<void>((resolve) => nextTurn(resolve));
      this.current = this.outside;
    }
    return true;
  }

  /** Runs work as that of a process. Returns false if it does not end in so many milliseconds. What it throws is wrong. */
  async perform(process: Process, work: () => Promise<void>, ms: number): Promise<boolean> {
    let over = false;
    this.at(process, 0, "work", () => {
      work()
        .catch((error: unknown) => this.violation(`${process.name}: ${(error as Error).stack}`))
        .finally(() => {
          over = true;
        });
    });
    return this.run(() => over, this.elapsed + ms);
  }

  /** Nobody caught it. A server would end. */
  unheard(error: unknown): void {
    if (error instanceof Died || !this.current.alive) return;
    this.violation(`${this.current.name}: nobody caught ${error instanceof Error ? error.stack : String(error)}`);
  }

  #push(event: Scheduled): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  return a.time !== b.time ? a.time < b.time : a.due !== b.due ? a.due < b.due : a.number < b.number;
}
