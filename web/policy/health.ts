// A reading of the curves: what looks well, what does not, and what to do about it.
import { number, percent } from "../format.ts";
import type { Mood } from "./rows.ts";

export interface Sign {
  mood: Mood;
  text: string;
}

type Column = readonly (number | null)[];

/** One row per step of the policy. Signs without data are left out. */
export function healthOf(columns: Readonly<Record<string, Column>>): Sign[] {
  return [rewardSign(columns), alikeSign(columns), ratioSign(columns), klSign(columns), entropySign(columns)].filter(
    (sign) => sign !== null,
  );
}

function rewardSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const values = known(columns["train/reward"] ?? columns.reward);
  if (values.length < 3) return null;
  const part = Math.max(1, Math.floor(values.length / 3));
  const change = mean(values.slice(-part)) - mean(values.slice(0, part));
  const noise = spreadOf(values) / Math.sqrt(part);
  if (change > noise) return { mood: "good", text: `reward rising, now ${number(values.at(-1)!)}` };
  if (change < -noise)
    return { mood: "bad", text: `reward falling, now ${number(values.at(-1)!)}: roll back, or a lower learning rate` };
  return { mood: "", text: `reward flat at ${number(mean(values))}` };
}

function alikeSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const dropped = known(columns.num_dropped_zero_adv).at(-1);
  const all = known(columns.num_trajectories).at(-1);
  if (dropped === undefined || all === undefined || all === 0) return null;
  const share = dropped / all;
  if (share <= 0.4) return null;
  return { mood: "warn", text: `${percent(share)} of tries in groups that are all alike: harder or easier tasks` };
}

function ratioSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const ratio = known(columns.ratio_mean).at(-1);
  if (ratio === undefined) return null;
  const isFar = Math.abs(ratio - 1) > 0.2;
  return {
    mood: isFar ? "warn" : "good",
    text: `ratios ${number(ratio)}${isFar ? ": the tries are from an old policy" : ""}`,
  };
}

function klSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const values = known(columns.kl_old_new_k3);
  const last = values.at(-1);
  if (last === undefined) return null;
  const usual = mean(values.slice(0, -1));
  const jumped = values.length > 3 && last > 5 * usual && last > 0.01;
  return { mood: jumped ? "warn" : "good", text: `KL ${number(last)}${jumped ? ": it jumped" : ""}` };
}

function entropySign(columns: Readonly<Record<string, Column>>): Sign | null {
  const values = known(columns.entropy);
  if (values.length < 3 || values.at(-1)! > 0.2 * values[0]!) return null;
  return { mood: "warn", text: `entropy fell to ${number(values.at(-1)!)}: answers become all alike` };
}

function known(column: Column | undefined): number[] {
  return (column ?? []).filter((value) => value !== null);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function spreadOf(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

/** Exponential smoothing; 0 changes nothing. Gaps stay gaps. */
export function smoothed(values: Column, weight: number): (number | null)[] {
  let last: number | null = null;
  return values.map((value) => {
    if (value === null) return null;
    last = last === null ? value : weight * last + (1 - weight) * value;
    return last;
  });
}
