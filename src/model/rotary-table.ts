// cos and sin of the rotation angles of each position, computed once per distinct RoPE. A step copies the rows it
// needs. The table grows with the positions that are asked for.

import { inverseFrequencies, type RopeSpec } from "./checkpoint/rope.ts";

export class RotaryTable {
  readonly #frequencies: ArrayLike<number>;
  readonly #attentionFactor: number;
  #cos = new Float32Array(0);
  #sin = new Float32Array(0);
  /** Half the number of dimensions that rotate. */
  readonly width: number;

  /** `positions`: how many to compute at once. `long`: whether to use the long factors of LongRoPE. */
  constructor(spec: RopeSpec, headDim: number, positions: number, long = false) {
    this.#frequencies = inverseFrequencies(spec, headDim, long);
    this.#attentionFactor = spec.attentionFactor;
    this.width = rotaryWidth(spec, headDim);
    this.#growTo(positions);
  }

  /** Writes the rows of consecutive positions at row `row` of cos and sin [n, width]. */
  copyTo(start: number, count: number, cos: Float32Array, sin: Float32Array, row: number): void {
    const from = start * this.width;
    const to = (start + count) * this.width;
    if (to > this.#cos.length) this.#growTo(Math.max(start + count, (2 * this.#cos.length) / this.width));
    cos.set(this.#cos.subarray(from, to), row * this.width);
    sin.set(this.#sin.subarray(from, to), row * this.width);
  }

  #growTo(positions: number): void {
    const known = this.#cos.length / this.width;
    const [cos, sin] = [new Float32Array(positions * this.width), new Float32Array(positions * this.width)];
    cos.set(this.#cos);
    sin.set(this.#sin);
    for (let position = known; position < positions; position++) {
      for (let i = 0; i < this.width; i++) {
        const angle = Math.fround(position * this.#frequencies[i]!);
        cos[position * this.width + i] = Math.cos(angle) * this.#attentionFactor;
        sin[position * this.width + i] = Math.sin(angle) * this.#attentionFactor;
      }
    }
    this.#cos = cos;
    this.#sin = sin;
  }
}

/** Half the number of dimensions of a head that rotate. */
export function rotaryWidth(spec: RopeSpec, headDim: number): number {
  return (spec.rotated ?? headDim) / 2;
}

/** The distinct ropes of a model's layers, and which one each layer uses; null = none. */
export function distinctRopes(layers: readonly { rope: RopeSpec | null }[]): {
  specs: RopeSpec[];
  ofLayer: (number | null)[];
} {
  const specs: RopeSpec[] = [];
  const ofLayer = layers.map(({ rope }) => {
    if (rope === null) return null;
    const known = specs.findIndex((spec) => JSON.stringify(spec) === JSON.stringify(rope));
    return known >= 0 ? known : specs.push(rope) - 1;
  });
  return { specs, ofLayer };
}
