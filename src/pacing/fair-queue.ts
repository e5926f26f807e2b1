// Work of several owners (a token, a workspace) that waits for a few workers. Whoever has least at work goes next, then
// whoever has used least, so one owner's thousand pieces delay another's by no more than the pieces that already run. An
// owner's own pieces go in the order in which they came.

export interface FairQueueOptions {
  /** Pieces of one owner that may wait. */
  waitingPerOwner: number;
  /** Pieces of one owner that may run at once, also while workers are free. Any number unless given. */
  runningPerOwner?: number;
}

export interface Turn<T> {
  item: T;
  /** Call it once, when the work has ended. `cost`: what it took, in a unit of the caller's, such as milliseconds. */
  end(cost: number): void;
}

interface Line<T> {
  waiting: T[];
  running: number;
  /** The sum of costs, on the queue's clock: an owner who comes back does not catch up on time in which it asked for nothing. */
  used: number;
}

export class FairQueue<T> {
  readonly #waitingPerOwner: number;
  readonly #runningPerOwner: number;
  readonly #lines = new Map<string, Line<T>>();
  /** What the owner served last had used by then. */
  #clock = 0;

  constructor({ waitingPerOwner, runningPerOwner = Number.POSITIVE_INFINITY }: FairQueueOptions) {
    this.#waitingPerOwner = waitingPerOwner;
    this.#runningPerOwner = runningPerOwner;
  }

  /** Returns false, and keeps nothing, when this owner has too much waiting. */
  add(owner: string, item: T): boolean {
    const line = this.#lines.get(owner) ?? { waiting: [], running: 0, used: this.#clock };
    if (line.waiting.length >= this.#waitingPerOwner) return false;
    if (line.waiting.length + line.running === 0) line.used = Math.max(line.used, this.#clock);
    line.waiting.push(item);
    this.#lines.set(owner, line);
    return true;
  }

  /** Call it when a worker is free. Returns undefined when nothing may start now. */
  take(): Turn<T> | undefined {
    let next: Line<T> | undefined;
    for (const [owner, line] of this.#lines) {
      if (line.waiting.length + line.running === 0 && line.used <= this.#clock) this.#lines.delete(owner);
      if (line.waiting.length === 0 || line.running >= this.#runningPerOwner) continue;
      if (next === undefined || goesBefore(line, next)) next = line;
    }
    if (next === undefined) return undefined;
    const line = next;
    line.running++;
    this.#clock = Math.max(this.#clock, line.used);
    return {
      item: line.waiting.shift()!,
      end: (cost) => {
        line.running--;
        line.used += cost;
      },
    };
  }

  /** Returns false if it is not waiting, for example because it runs already. */
  remove(owner: string, item: T): boolean {
    const waiting = this.#lines.get(owner)?.waiting ?? [];
    const at = waiting.indexOf(item);
    if (at < 0) return false;
    waiting.splice(at, 1);
    return true;
  }

  /** Empties the queue, and returns what waited. */
  removeAll(): T[] {
    return [...this.#lines.values()].flatMap((line) => line.waiting.splice(0));
  }
}

function goesBefore(a: Line<unknown>, b: Line<unknown>): boolean {
  return a.running === b.running ? a.used < b.used : a.running < b.running;
}
