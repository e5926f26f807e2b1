// Engine counters in shared memory. The engine thread adds to them in place; the main thread reads them at any time
// without a message. They survive a restart, because the next thread gets the same memory.

import type { EngineStats, EngineStep } from "./contract.ts";

/** The counters that are single numbers. */
export const STAT_NAMES = [
  "running",
  "waiting",
  "kvUsage",
  "preemptions",
  "prefixQueries",
  "prefixHits",
  "promptTokens",
  "generatedTokens",
  "steps",
] as const satisfies readonly (keyof EngineStats)[];

type StatName = (typeof STAT_NAMES)[number];

const INDEX = Object.fromEntries(STAT_NAMES.map((name, i) => [name, i])) as Record<StatName, number>;

/** Bounds of the histogram of tokens per step. */
const STEP_TOKEN_BOUNDS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384] as const;

/** Cells: one per name, the sum of tokens of all steps, one count per bound, and one for larger steps. */
const STEP_SUM = STAT_NAMES.length;
const STEP_COUNTS = STEP_SUM + 1;
const RING = STEP_COUNTS + STEP_TOKEN_BOUNDS.length + 1;

/** The last steps, three cells each. */
const RING_STEPS = 4096;
const CELLS = RING + 3 * RING_STEPS;

/** Steps that the engine may take while they are read. */
const MARGIN = 64;

export class StatCells {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Float64Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(CELLS * 8)) {
    this.memory = memory;
    this.#cells = new Float64Array(memory);
  }

  add(name: StatName, amount: number): void {
    this.#cells[INDEX[name]]! += amount;
  }

  set(name: StatName, value: number): void {
    this.#cells[INDEX[name]] = value;
  }

  /** A step that has produced this many tokens. Steps in the middle of a prompt produce none and are not counted here. */
  addStep(tokens: number, { at, decode, prefill }: EngineStep): void {
    const place = RING + 3 * (this.#cells[INDEX.steps]! % RING_STEPS);
    this.#cells.set([at, decode, prefill], place);
    this.add("steps", 1);
    if (tokens === 0) return;
    const bucket = STEP_TOKEN_BOUNDS.findIndex((bound) => tokens <= bound);
    this.#cells[STEP_SUM]! += tokens;
    this.#cells[STEP_COUNTS + (bucket < 0 ? STEP_TOKEN_BOUNDS.length : bucket)]! += 1;
  }

  /** The steps after the first `seen` ones. The oldest may be gone. */
  steps(seen: number): EngineStep[] {
    const count = this.#cells[INDEX.steps]!;
    const found: EngineStep[] = [];
    for (let step = Math.max(seen, count - RING_STEPS + MARGIN); step < count; step++) {
      const [at, decode, prefill] = this.#cells.subarray(RING + 3 * (step % RING_STEPS));
      found.push({ at: at!, decode: decode!, prefill: prefill! });
    }
    return found;
  }

  read(): EngineStats {
    const stats = {} as Record<StatName, number>;
    for (const name of STAT_NAMES) stats[name] = this.#cells[INDEX[name]]!;
    const counts = [...this.#cells.subarray(STEP_COUNTS, RING)];
    return { ...stats, stepTokens: { bounds: STEP_TOKEN_BOUNDS, counts, sum: this.#cells[STEP_SUM]! } };
  }
}
