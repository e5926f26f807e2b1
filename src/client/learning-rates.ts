// Learning-rate schedules for supervised jobs: one rate per batch, for `config.learning_rate`.

export interface ScheduleOptions {
  peak: number;
  batches: number;
  shape: "constant" | "linear" | "cosine";
  /** Batches over which the rate rises to the peak. */
  warmup?: number;
}

/** Rises linearly during the warm-up, then falls to 0 at the last batch, or stays at the peak if constant. */
export function learningRates({ peak, batches, shape, warmup = 0 }: ScheduleOptions): number[] {
  return Array.from({ length: batches }, (_, i) => {
    if (i < warmup) return (peak * (i + 1)) / warmup;
    const span = batches - warmup - 1;
    const done = span <= 0 ? 0 : (i - warmup) / span;
    if (shape === "constant") return peak;
    return shape === "linear" ? peak * (1 - done) : (peak * (1 + Math.cos(Math.PI * done))) / 2;
  });
}
