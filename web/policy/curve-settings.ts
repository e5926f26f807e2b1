// How curves are shown, and its form in the address. What equals its default stays out of the address.

export const XS = ["step", "gradient_step"] as const;
export type X = (typeof XS)[number];

export interface CurveSettings {
  x: X;
  /** Weight of the past, from 0 to 0.95. */
  smoothing: number;
  isLog: boolean;
  /** A regular expression over the names of metrics; "" shows those of `keys`. */
  pattern: string;
  /** Names of metrics; none: the main ones. */
  keys: readonly string[];
  /** Ids of what is drawn into the same charts. */
  others: readonly string[];
}

const MOST_SMOOTHING = 0.95;

export function curveSettingsFrom(query: string): CurveSettings {
  const read = new URLSearchParams(query);
  const smoothing = Number(read.get("smooth") ?? 0);
  return {
    x: XS.find((name) => name === read.get("x")) ?? "step",
    smoothing: smoothing >= 0 && smoothing <= MOST_SMOOTHING ? smoothing : 0,
    isLog: read.get("log") === "1",
    pattern: read.get("metrics") ?? "",
    keys: read.getAll("key"),
    others: [...new Set(read.getAll("with"))].slice(0, MOST_OTHERS),
  };
}

/** As many as have colours of their own, beside the first. */
export const MOST_OTHERS = 5;

/** `query` with these settings, without "?". What else it says stays. */
export function curveQuery({ x, smoothing, isLog, pattern, keys, others }: CurveSettings, query = ""): string {
  const all = new URLSearchParams(query);
  for (const name of ["x", "smooth", "log", "metrics", "key", "with"]) all.delete(name);
  if (x !== "step") all.set("x", x);
  if (smoothing > 0) all.set("smooth", String(smoothing));
  if (isLog) all.set("log", "1");
  if (pattern !== "") all.set("metrics", pattern);
  for (const key of keys) all.append("key", key);
  for (const id of others) all.append("with", id);
  return all.toString();
}
