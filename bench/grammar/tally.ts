// Counts verdicts of one engine with one vocabulary over one suite.

import type { Verdict } from "./engine.ts";
import type { SchemaCase } from "./suites.ts";

export class Tally {
  schemas = 0;
  compiled = 0;
  /** Schemas that compiled and whose every instance was judged right. */
  right = 0;
  /** Instances of compiled schemas. */
  valid = 0;
  validRejected = 0;
  invalid = 0;
  invalidAccepted = 0;
  readonly compileMs: number[] = [];
  readonly #refusals = new Map<string, number>();
  readonly #microseconds: Float32Array[] = [];

  add({ instances }: SchemaCase, verdict: Verdict): void {
    this.schemas++;
    this.compileMs.push(verdict.compileMs);
    if (!verdict.compiled) {
      const reason = withoutNames(verdict.reason);
      this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
      return;
    }
    this.compiled++;
    this.#microseconds.push(verdict.microseconds);
    let wrong = 0;
    for (const [index, { valid }] of instances.entries()) {
      const accepted = verdict.accepted[index]!;
      if (valid) this.valid++;
      else this.invalid++;
      if (accepted !== valid) wrong++;
      if (valid && !accepted) this.validRejected++;
      if (!valid && accepted) this.invalidAccepted++;
    }
    if (wrong === 0) this.right++;
  }

  get refusals(): readonly (readonly [reason: string, count: number])[] {
    return [...this.#refusals].sort((a, b) => b[1] - a[1]);
  }

  /** Mask and accept per token, in ascending order. */
  tokenTimes(): Float32Array {
    const all = new Float32Array(this.#microseconds.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of this.#microseconds) {
      all.set(part, at);
      at += part.length;
    }
    return all.sort();
  }
}

/** `sorted` is in ascending order. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Two reasons are the same when they differ only in places, numbers and names other than the keyword's. */
function withoutNames(reason: string): string {
  let names = 0;
  return reason
    .replace(/, at #.*$/s, "")
    .replace(/"(?:[^"\\]|\\.)*"/g, (name) => (names++ === 0 ? name : '"…"'))
    .replace(/(?<!")-?\b\d+(\.\d+)?/g, "N")
    .slice(0, 160);
}
