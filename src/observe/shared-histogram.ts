// A Prometheus histogram whose counts come from elsewhere. At each scrape it shows the counts it was last given.
// prom-client's own histogram can only observe single values.
import type { Metric, MetricValue, Registry } from "prom-client";

export interface Counts {
  /** Upper bounds, ascending. */
  bounds: readonly number[];
  /** One count per bound, not cumulative, and one for values above the last bound. */
  counts: readonly number[];
  sum: number;
}

type Labels = Record<string, string>;

export class SharedHistogram {
  readonly name: string;
  readonly #help: string;
  #labels: Labels = {};
  #counts: Counts | null = null;

  constructor(name: string, help: string, registry: Registry) {
    this.name = name;
    this.#help = help;
    registry.registerMetric(this as unknown as Metric);
  }

  show(labels: Labels, counts: Counts): void {
    this.#labels = labels;
    this.#counts = counts;
  }

  /** Called by the registry. */
  async get() {
    return { name: this.name, help: this.#help, type: "histogram", values: this.#samples() };
  }

  #samples(): (MetricValue<string> & { metricName: string })[] {
    if (this.#counts === null) return [];
    const { bounds, counts, sum } = this.#counts;
    const sample = (suffix: string, value: number, labels: Labels = {}) => ({
      metricName: `${this.name}_${suffix}`,
      labels: { ...labels, ...this.#labels },
      value,
    });
    let total = 0;
    const buckets = counts.map((count, i) => {
      total += count;
      return sample("bucket", total, { le: String(bounds[i] ?? "+Inf") });
    });
    return [...buckets, sample("sum", sum), sample("count", total)];
  }
}
