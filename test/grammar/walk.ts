// Random walks under a constraint. Each step draws one of the legal tokens with equal probability, so walks reach every
// corner of the language. A walk ends when it draws a stop id. After `patience` tokens it prefers stop ids and closing
// characters, to reach the end.

import { compileConstraint } from "../../src/grammar/compile.ts";
import type { ConstrainedOutput, OutputShape } from "../../src/grammar/constraint.ts";
import { GrammarError } from "../../src/grammar/grammar-error.ts";
import { GrammarConstraintFactory, grammarKey } from "../../src/grammar/match/constraint-factory.ts";
import type { TokenVocabulary } from "../../src/grammar/match/token-vocabulary.ts";

export const plainJson = { compact: false, closedObjects: false, whitespacePattern: null };

export function keyOf(shape: OutputShape, reasoning: ConstrainedOutput["reasoning"] = null): string {
  return grammarKey(compileConstraint({ shape, reasoning }));
}

export function refusal(shape: OutputShape): string {
  try {
    compileConstraint({ shape, reasoning: null });
  } catch (error) {
    if (error instanceof GrammarError) return error.message;
    throw error;
  }
  return "accepted";
}

/** One token per byte, then the given pieces, then one stop id, which is the last token. */
export function vocabularyOf(pieces: readonly string[]): TokenVocabulary {
  const encoder = new TextEncoder();
  const parts = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...pieces.map((piece) => encoder.encode(piece)),
    new Uint8Array(0),
  ];
  const offsets = new Int32Array(parts.length + 1);
  for (const [index, part] of parts.entries()) offsets[index + 1] = offsets[index]! + part.length;
  return { size: parts.length, bytes: Uint8Array.from(parts.flatMap((part) => [...part])), offsets };
}

export const byteVocabulary: TokenVocabulary = vocabularyOf([]);

/** A vocabulary like those of real models: whole words, runs of JSON punctuation, parts of characters. */
export const clumpedVocabulary: TokenVocabulary = vocabularyOf(
  (
    '{" "} ": ", " "," ["] "], [{ }] }, {} [] "" tr true fal false null nul 10 100 .5 e+ \\n \\" \\u \\u00 \\\\ name value id type the and ab abc hello Hel lo ' +
    "<tool_call> </tool_call> <think> </think> </ > é ß 中 中文 \u{1f600} 20 2024 -01 T1 Z yes no maybe SELECT from where"
  )
    .split(" ")
    .concat(["  ", "\n", "\n  ", ", ", ": ", '": "', '",\n', " the"]),
);

export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Walk {
  text: string;
  tokens: number[];
  finished: boolean;
}

export class Walker {
  readonly vocabulary: TokenVocabulary;
  readonly factory: GrammarConstraintFactory;

  constructor(vocabulary: TokenVocabulary) {
    this.vocabulary = vocabulary;
    this.factory = new GrammarConstraintFactory(vocabulary);
  }

  walk(key: string, seed: number, patience = 60, limit = 5000): Walk {
    const draw = random(seed);
    const stop = this.vocabulary.size - 1;
    const constraint = this.factory.create(key, [stop], false);
    const tokens: number[] = [];
    let finished = false;
    while (tokens.length < limit) {
      const legal = legalTokens(constraint.mask()!, this.vocabulary.size);
      const next = tokens.length < patience ? legal[Math.floor(draw() * legal.length)]! : this.#closing(legal, draw);
      if (next === stop) {
        finished = true;
        break;
      }
      constraint.accept(next);
      tokens.push(next);
    }
    return { text: this.textOf(tokens), tokens, finished };
  }

  textOf(tokens: readonly number[]): string {
    const { bytes, offsets } = this.vocabulary;
    const all = tokens.flatMap((token) => [...bytes.subarray(offsets[token]!, offsets[token + 1]!)]);
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(all));
  }

  #closing(legal: readonly number[], draw: () => number): number {
    const stop = this.vocabulary.size - 1;
    if (legal.includes(stop) && draw() < 0.9) return stop;
    const closers = draw() < 0.5 ? [0x22, 0x7d, 0x5d] : [0x7d, 0x5d, 0x22];
    const closer = closers.find((id) => legal.includes(id));
    if (closer !== undefined && draw() < 0.7) return closer;
    const printable = legal.filter((id) => id >= 0x20 && id < 0x7f);
    const pool = printable.length > 0 ? printable : legal;
    return pool[Math.floor(draw() * pool.length)]!;
  }
}

export function legalTokens(mask: Int32Array, size: number): number[] {
  const legal: number[] = [];
  for (let id = 0; id < size; id++) if ((mask[id >>> 5]! >>> (id & 31)) & 1) legal.push(id);
  return legal;
}
