// Which charts are shown of the curves of policies and jobs, what each of them means, and how several lines share one chart.

export interface ChartRow {
  title: string;
  /** One line each. */
  keys: readonly string[];
  /** What the curve means; null if the page does not know. */
  meaning: string | null;
}

export type Columns = Readonly<Record<string, readonly (number | null)[]>>;

/** The first charts, in this order. Names in one list share a chart; `instead` is shown where none of them is there. */
const MAIN = [
  {
    title: "reward",
    keys: ["train/reward", "val/reward"],
    instead: "reward",
    meaning: "Mean reward of the rollouts. It should rise; val/ is what it was not trained on.",
  },
  {
    title: "entropy",
    keys: ["entropy"],
    meaning: "How open each next token is. Near zero, rollouts become all alike.",
  },
  {
    title: "KL, old to new",
    keys: ["kl_old_new_k3"],
    meaning: "How far a job moved from the policy that wrote its rollouts. A jump is a step too far.",
  },
  { title: "loss", keys: ["loss"], meaning: "What a gradient step lowers. In RL it need not fall: watch the reward." },
  {
    title: "gradient norm",
    keys: ["grad_norm"],
    meaning: "Size of the gradient before it is clipped. Spikes are rare rollouts.",
  },
  {
    title: "clipped share",
    keys: ["clip_frac_low", "clip_frac_high"],
    meaning:
      "Share of tokens whose ratio left the allowed range. High: the learning rate is too large, or rollouts too old.",
  },
  {
    title: "ratio",
    keys: ["ratio_mean", "ratio_max"],
    meaning: "New probability over old. Far from 1, the rollouts come from another policy than the one being trained.",
  },
  {
    title: "learning rate",
    keys: ["learning_rate"],
    meaning: "How far each gradient step goes, with its multipliers.",
  },
] as const satisfies readonly (ChartRow & { instead?: string })[];

const PLACES = new Set(["step", "gradient_step"]);

/** Names of all metrics that have values, in the order of the alphabet. */
export function metricsOf(sources: readonly Columns[]): string[] {
  const names = new Set(sources.flatMap((columns) => Object.keys(columns)));
  return [...names].filter((key) => !PLACES.has(key) && sources.some((columns) => hasValues(columns, key))).sort();
}

function hasValues(columns: Columns, key: string): boolean {
  return columns[key]?.some((value) => value !== null) === true;
}

/** Every name that matches the pattern, or those of `chosen`, or the main ones. Throws if the pattern is no regular expression. */
export function chartsOf(sources: readonly Columns[], pattern: string, chosen: readonly string[]): ChartRow[] {
  const has = (key: string) => sources.some((columns) => hasValues(columns, key));
  const wanted = pattern === "" ? null : new RegExp(pattern, "i");
  if (wanted !== null || chosen.length > 0) {
    const keys = metricsOf(sources).filter((key) => wanted?.test(key) ?? chosen.includes(key));
    return keys.map((key) => ({ title: key, keys: [key], meaning: meaningOf(key) }));
  }
  return MAIN.map(({ title, keys, meaning, ...more }) => {
    const found: string[] = keys.filter(has);
    const instead = "instead" in more && found.length === 0 && has(more.instead) ? [more.instead] : [];
    return { title, keys: [...found, ...instead], meaning };
  }).filter(({ keys }) => keys.length > 0);
}

function meaningOf(key: string): string | null {
  return (
    MAIN.find((row) => ([...row.keys] as string[]).includes(key) || ("instead" in row && row.instead === key))
      ?.meaning ?? null
  );
}

export interface CurvePage {
  columns: Record<string, (number | null)[]>;
  next: number;
  has_more: boolean;
}

/** The rows of `before` with those of `more` below. A metric that one of them lacks has gaps there. */
export function withRows(before: CurvePage, more: CurvePage, x: string): CurvePage {
  const height = ({ columns }: CurvePage) => columns[x]?.length ?? 0;
  const column = (page: CurvePage, key: string) => page.columns[key] ?? new Array<null>(height(page)).fill(null);
  const keys = new Set([...Object.keys(before.columns), ...Object.keys(more.columns)]);
  const columns = Object.fromEntries([...keys].map((key) => [key, [...column(before, key), ...column(more, key)]]));
  return { columns, next: more.next, has_more: more.has_more };
}

/** The places of several sources in one order. */
export interface Together {
  xs: number[];
  /** Per source, the row that it has at each x; −1 if it has none there. */
  rows: number[][];
}

/** `places`: of each source, ascending. */
export function together(places: readonly (readonly number[])[]): Together {
  const xs = [...new Set(places.flat())].sort((one, other) => one - other);
  const rows = places.map((own) => {
    const rowAt = new Map(own.map((x, row) => [x, row]));
    return xs.map((x) => rowAt.get(x) ?? -1);
  });
  return { xs, rows };
}

/** Exponential smoothing; 0 changes nothing. Gaps stay gaps. */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  let last: number | null = null;
  return values.map((value) => {
    if (value === null) return null;
    last = last === null ? value : weight * last + (1 - weight) * value;
    return last;
  });
}
