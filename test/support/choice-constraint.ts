// A token-level grammar for tests: the output is exactly one of some token sequences, then a stop id. The grammar key
// is the JSON of those sequences. With `jump` false it never forces tokens, so that tests can compare with sampled
// ones.

import type { ConstraintFactory, SequenceConstraint } from "../../src/grammar/match/sequence-constraint.ts";

export class ChoiceConstraints implements ConstraintFactory {
  readonly #words: number;
  readonly #jump: boolean;
  /** Constraints created but not yet disposed of. */
  live = 0;

  constructor(vocabSize: number, jump = true) {
    this.#words = Math.ceil(vocabSize / 32);
    this.#jump = jump;
  }

  create(grammar: string, stopTokenIds: readonly number[], ignoreEos: boolean): SequenceConstraint {
    const choices = JSON.parse(grammar) as number[][];
    const output: number[] = [];
    let disposed = false;
    this.live++;
    const matching = (prefix: readonly number[]): number[][] =>
      choices.filter((choice) => prefix.every((id, i) => choice[i] === id));
    /** Legal next ids after `prefix`; null = anything. */
    const legal = (prefix: readonly number[]): Set<number> | null => {
      const open = matching(prefix);
      if (ignoreEos && (open.length === 0 || open.every((choice) => choice.length === prefix.length))) return null;
      return new Set(
        open.flatMap((choice) => (choice.length === prefix.length ? stopTokenIds : [choice[prefix.length]!])),
      );
    };
    return {
      ready: () => true,
      mask: () => {
        const ids = legal(output);
        if (ids === null) return null;
        const mask = new Int32Array(this.#words);
        for (const id of ids) mask[id >>> 5]! |= 1 << (id & 31);
        return mask;
      },
      accept: (id) => {
        if (disposed) throw new Error("accept after dispose");
        output.push(id);
      },
      forced: () => {
        const run: number[] = [];
        while (this.#jump) {
          const ids = legal([...output, ...run]);
          if (ids === null || ids.size !== 1) break;
          const [id] = ids as unknown as [number];
          run.push(id);
          if (stopTokenIds.includes(id)) break;
        }
        return run;
      },
      dispose: () => {
        if (disposed) throw new Error("disposed twice");
        disposed = true;
        this.live--;
      },
    };
  }
}
