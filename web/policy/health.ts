// A reading of the curves: what looks well, what does not, and what to do about it.
import { number, percent } from "../format.ts";
import type { Mood, Verdicts } from "./rows.ts";

export interface Sign {
  mood: Mood;
  text: string;
  /** What the number is, and what to do. */
  meaning: string;
}

/** Share of groups without a difference above which much of the sampling is wasted. */
const MANY_ALIKE = 0.4;
const FAR_RATIO = 0.2;

type Column = readonly (number | null)[];

/** One row per step of the policy; the totals of its last RL job. Signs without data are left out. */
export function healthOf(columns: Readonly<Record<string, Column>>, totals: Verdicts | null): Sign[] {
  const signs = [rewardSign(columns), alikeSign(totals), ratioSign(columns), klSign(columns), entropySign(columns)];
  return signs.filter((sign) => sign !== null);
}

function rewardSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const values = known(columns["train/reward"] ?? columns.reward);
  if (values.length < 3) return null;
  const part = Math.max(1, Math.floor(values.length / 3));
  const change = mean(values.slice(-part)) - mean(values.slice(0, part));
  const noise = spreadOf(values) / Math.sqrt(part);
  const last = number(values.at(-1)!);
  if (change > noise) {
    return {
      mood: "good",
      text: `reward rising, now ${last}`,
      meaning: "The last third of its steps does better than the first.",
    };
  }
  if (change < -noise) {
    const meaning = "The last third of its steps does worse than the first. Roll back, or lower the learning rate.";
    return { mood: "bad", text: `reward falling, now ${last}`, meaning };
  }
  const meaning =
    "The last third of its steps is like the first, within the noise. It needs more steps, or other tasks.";
  return { mood: "", text: `reward flat at ${number(mean(values))}`, meaning };
}

function alikeSign(totals: Verdicts | null): Sign | null {
  if (totals === null || totals.groups === 0 || totals.trainable_groups === null) return null;
  const share = 1 - totals.trainable_groups / totals.groups;
  const isHigh = share > MANY_ALIKE;
  return {
    mood: isHigh ? "warn" : "good",
    text: `${percent(share)} of groups all alike`,
    meaning: `In the last job. A group whose rollouts are all rewarded alike teaches nothing.${isHigh ? " Choose harder or easier tasks." : ""}`,
  };
}

function ratioSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const ratio = known(columns.ratio_mean).at(-1);
  if (ratio === undefined) return null;
  const isFar = Math.abs(ratio - 1) > FAR_RATIO;
  return {
    mood: isFar ? "warn" : "good",
    text: `ratios ${number(ratio)}`,
    meaning: isFar
      ? "The rollouts come from a policy that differs from the one being trained. Sample from the newest step."
      : "New probability over old, on average. Near 1, the rollouts come from the policy being trained.",
  };
}

function klSign(columns: Readonly<Record<string, Column>>): Sign | null {
  const values = known(columns.kl_old_new_k3);
  const last = values.at(-1);
  if (last === undefined) return null;
  const usual = mean(values.slice(0, -1));
  const jumped = values.length > 3 && last > 5 * usual && last > 0.01;
  return {
    mood: jumped ? "warn" : "good",
    text: `KL ${number(last)}${jumped ? ", it jumped" : ""}`,
    meaning: jumped
      ? "The last job moved more than five times as far as usual. Lower the learning rate, or roll back."
      : "How far the last job moved from the policy that wrote its rollouts.",
  };
}

function entropySign(columns: Readonly<Record<string, Column>>): Sign | null {
  const values = known(columns.entropy);
  if (values.length < 3 || values.at(-1)! > 0.2 * values[0]!) return null;
  const meaning = "Less than a fifth of the first step's: answers become all alike, and groups with them.";
  return { mood: "warn", text: `entropy fell to ${number(values.at(-1)!)}`, meaning };
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
