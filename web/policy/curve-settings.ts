// How the curves of a policy are shown, and its form in the address. What equals its default stays out of the address.

export const XS = ["step", "gradient_step"] as const;
export type X = (typeof XS)[number];

export interface CurveSettings {
  x: X;
  /** Weight of the past, from 0 to 0.95. */
  smoothing: number;
  isLog: boolean;
  /** A regular expression over the names of metrics; "" is the main ones. */
  pattern: string;
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
  };
}

/** Without "?". */
export function curveQuery({ x, smoothing, isLog, pattern }: CurveSettings): string {
  const query = new URLSearchParams();
  if (x !== "step") query.set("x", x);
  if (smoothing > 0) query.set("smooth", String(smoothing));
  if (isLog) query.set("log", "1");
  if (pattern !== "") query.set("metrics", pattern);
  return query.toString();
}
