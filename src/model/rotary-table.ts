// cos and sin of every position's rotation angles, computed once per distinct RoPE; a step copies the rows it needs.

import { inverseFrequencies, type RopeSpec } from "./checkpoint/rope.ts";

export class RotaryTable {
  private readonly cos: Float32Array;
  private readonly sin: Float32Array;
  /** headDim / 2 */
  readonly width: number;

  constructor(spec: RopeSpec, headDim: number, positions: number) {
    const frequencies = inverseFrequencies(spec, headDim);
    this.width = headDim / 2;
    this.cos = new Float32Array(positions * this.width);
    this.sin = new Float32Array(positions * this.width);
    for (let position = 0; position < positions; position++) {
      for (let i = 0; i < this.width; i++) {
        const angle = Math.fround(position * frequencies[i]!);
        this.cos[position * this.width + i] = Math.cos(angle) * spec.attentionFactor;
        this.sin[position * this.width + i] = Math.sin(angle) * spec.attentionFactor;
      }
    }
  }

  /** Writes the rows of consecutive positions at row `row` of cos and sin [n, headDim / 2]. */
  copyTo(start: number, count: number, cos: Float32Array, sin: Float32Array, row: number): void {
    const from = start * this.width;
    const to = (start + count) * this.width;
    cos.set(this.cos.subarray(from, to), row * this.width);
    sin.set(this.sin.subarray(from, to), row * this.width);
  }
}

/** The distinct ropes of a model's layers, and which one each layer uses. */
export function distinctRopes(layers: readonly { rope: RopeSpec }[]): { specs: RopeSpec[]; ofLayer: number[] } {
  const specs: RopeSpec[] = [];
  const ofLayer = layers.map(({ rope }) => {
    const known = specs.findIndex((spec) => JSON.stringify(spec) === JSON.stringify(rope));
    return known >= 0 ? known : specs.push(rope) - 1;
  });
  return { specs, ofLayer };
}
