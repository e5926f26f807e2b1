// The settings of the scheduler and the order in which requests run.

export interface SchedulingOptions {
  /** Sequences that may run at the same time. */
  maxNumSeqs: number;
  /** Tokens per step. Decoding sequences take theirs first; prefill chunks share the rest, at least one block. */
  maxNumBatchedTokens: number;
  /** Tokens per step in which nothing decodes, so that no stream waits for its end. */
  maxNumPromptTokens: number;
  policy: "priority" | "fcfs";
  /** Under "priority", waiting this long makes up for one level of priority. */
  agingSeconds: number;
  /** Reuse the keys and values of earlier requests with the same beginning. */
  prefixCaching: boolean;
  /** Tokens per link of the prefix cache: a divisor of the runner's `positionsPerBlock`; null = the whole block. */
  linkSize: number | null;
}

export const DEFAULT_SCHEDULING: SchedulingOptions = {
  maxNumSeqs: 32,
  maxNumBatchedTokens: 256,
  maxNumPromptTokens: 256,
  policy: "priority",
  agingSeconds: 10,
  prefixCaching: true,
  linkSize: null,
};

/** Fills in defaults. Throws on values that the scheduler cannot work with. */
export function schedulingOptions(given: Partial<SchedulingOptions>): SchedulingOptions {
  const { maxNumBatchedTokens = DEFAULT_SCHEDULING.maxNumBatchedTokens } = given;
  const options = { ...DEFAULT_SCHEDULING, maxNumPromptTokens: maxNumBatchedTokens, ...given };
  for (const name of ["maxNumSeqs", "maxNumBatchedTokens", "maxNumPromptTokens"] as const) {
    if (!Number.isInteger(options[name]) || options[name] < 1) {
      throw new Error(`${name} must be a positive integer, got ${options[name]}`);
    }
  }
  if (!(options.agingSeconds > 0 && options.agingSeconds < Number.POSITIVE_INFINITY)) {
    throw new Error(`agingSeconds must be a positive number, got ${options.agingSeconds}`);
  }
  return options;
}

/**
 * A request's place in the queue, smaller first, fixed for its life. Under "priority" it is the arrival time plus
 * `agingSeconds` per level. That is the same as lowering the priority of every waiting request at a constant rate, but
 * needs no re-sorting. So nobody starves: only requests that arrive within k * agingSeconds can overtake one that is k
 * levels worse. Equal priorities run in order of arrival.
 */
export function rankOf(priority: number, nowMs: number, options: SchedulingOptions): number {
  return options.policy === "priority" ? nowMs + priority * options.agingSeconds * 1000 : 0;
}
