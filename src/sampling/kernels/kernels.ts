// The loops over the vocabulary, as WebAssembly SIMD. Plain JavaScript takes about 2 ns per entry for the simplest pass
// and 10 ns for one with exp; these take a fifth to a tenth of that. Results are bit-identical on every machine,
// because there are no relaxed instructions and one fixed order of additions.

import { mask } from "./mask.ts";
import { countAtLeast, findBucket, gather, histogram, scan } from "./search.ts";
import { encodeModule } from "./wasm.ts";
import { sumAtLeast, weigh } from "./weights.ts";

/** A row as `scan` left it: its address in bytes, its length in blocks (> 0), and the address of its block maxima. */
type Row = [row: number, blocks: number, maxima: number];

/** All addresses are in bytes. */
export interface Kernels {
  mask(...args: [...Row, words: number]): void;
  scan(...args: Row): number;
  weigh(...args: [...Row, toWeights: number, sums: number, cut: number, max: number, octaves: number]): number;
  sumAtLeast(...args: [...Row, toWeights: number, sums: number, cut: number]): number;
  histogram(...args: [...Row, counts: number, hiKey: number, shift: number, cut: number, top: number]): void;
  findBucket(counts: number, need: number, above: number): number;
  gather(...args: [...Row, hiKey: number, span: number, cut: number, out: number, limit: number]): number;
  countAtLeast(...args: [...Row, value: number]): number;
}

// The WebAssembly globals that this file needs. Node's types do not declare them.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (module: object, imports: { host: { memory: KernelMemory } }) => { exports: unknown };
  Memory: new (descriptor: { initial: number }) => KernelMemory;
};

export interface KernelMemory {
  readonly buffer: ArrayBuffer;
}

const compiled = new WebAssembly.Module(
  encodeModule([mask, scan, weigh, sumAtLeast, histogram, findBucket, gather, countAtLeast]),
);

/** The kernels over a new memory of at least `bytes`. */
export function instantiateKernels(bytes: number): { kernels: Kernels; memory: KernelMemory } {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65_536) });
  return { kernels: new WebAssembly.Instance(compiled, { host: { memory } }).exports as Kernels, memory };
}
