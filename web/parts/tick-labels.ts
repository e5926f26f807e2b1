// Where the ticks of a chart are, and what stands beside them.
import { number } from "../format.ts";

/** More digits help nobody. */
const MOST_DIGITS = 9;

/** 1, 2 and 5 times every power of ten from the `least` on. From 0 on for steps: nothing lies between two of them. */
export function tickDistances(least: number): number[] {
  const powers = Array.from({ length: 12 - least }, (_, i) => least + i);
  return powers.flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
}

/** A label per tick, no two the same: values that are nearly equal get more digits, or only the first of them a label. */
export function tickLabels(ticks: readonly (number | null)[], format: (value: number) => string): string[] {
  const labelled = (label: (value: number) => string) => ticks.map((tick) => (tick === null ? "" : label(tick)));
  for (let digits = 3; digits <= MOST_DIGITS && format === number; digits++) {
    const labels = labelled((tick) => number(tick, digits));
    if (!labels.some((label, i) => isRepeated(labels, label, i))) return labels;
  }
  const labels = labelled(format);
  return labels.map((label, i) => (isRepeated(labels, label, i) ? "" : label));
}

function isRepeated(labels: readonly string[], label: string, at: number): boolean {
  return label !== "" && labels.indexOf(label) < at;
}

/** The one value that all points have; null if they differ, or if there is none. */
export function onlyValue(columns: readonly (readonly (number | null | undefined)[])[]): number | null {
  let found: number | null = null;
  for (const values of columns) {
    for (const value of values) {
      if (value == null || value === found) continue;
      if (found !== null) return null;
      found = value;
    }
  }
  return found;
}
