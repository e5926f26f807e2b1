// Loads Flywheel's native module (native/): a thin binding to the ONNX Runtime library that onnxruntime-node carries, whose
// sessions know operations of our own. It is compiled for Linux with glibc on x64 and arm64, for each kind of vectors; without
// it, graphs run by onnxruntime-node with the runtime's operations only.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TypedData } from "../graph.ts";

/** One session of the runtime. It lives as long as this object, or until it is released. */
export type SessionHandle = { readonly __session: unique symbol };

export interface NativeModule {
  /** Whether this processor has the instructions that the operations use. */
  runsHere(): boolean;
  /** How it multiplies int8 weights with many rows: "amx", "vnni", "neon" or "words". Bits differ between words and the others. */
  int8Path(): string;
  /** Loads the runtime's library. Once is enough for all threads. */
  open(libraryPath: string): void;
  /**
   * `ownThreads`: threads of the module share its operations, and wait `spinMicroseconds` in a busy loop before they sleep. The
   * runtime's operations have one thread then. `config`: key, value, key, value .. `fileContents` are copied.
   */
  createSession(
    model: Uint8Array,
    threads: number,
    ownThreads: boolean,
    spinMicroseconds: number,
    config: readonly string[],
    fileNames: readonly string[],
    fileContents: readonly Uint8Array[],
  ): SessionHandle;
  names(session: SessionHandle, ofOutputs: boolean): string[];
  /** Takes inputs for all later runs, laid out as for `run`. Their arrays must live as long as the session. */
  keep(session: SessionHandle, layout: Float64Array, arrays: readonly (TypedData | null)[]): void;
  /**
   * Blocks until all is computed. `layout` has LAYOUT_SLOT numbers for each input, then for each output: UNUSED, ALLOCATE or
   * the ONNX type of the array given in `arrays`; the rank; the dimensions. Outputs to ALLOCATE come back in both.
   */
  run(session: SessionHandle, layout: Float64Array, arrays: (TypedData | ArrayBuffer | null)[]): void;
  release(session: SessionHandle): void;
  /**
   * Packs weights for Int8Linear nodes, which name them by the returned number. values: [inputs][outputs]; scales and bias:
   * [outputs]. They live until they are released and the last session with such a node is, or their thread ends.
   */
  packInt8(values: Int8Array, scales: Float32Array, bias: Float32Array | null, inputs: number, outputs: number): number;
  /** The same for Int4Linear nodes. values: [outputs][inputs / 2], as Int4Weights has them; scales: [outputs][inputs / 32]. */
  packInt4(
    values: Uint8Array,
    scales: Float32Array,
    bias: Float32Array | null,
    inputs: number,
    outputs: number,
  ): number;
  releaseWeights(weights: number): void;
  /** Asks the system for large pages, on which long memory is read faster. Call it before the memory is written. */
  useHugePages(memory: TypedData): void;
}

export const MAX_RANK = 8;
export const LAYOUT_SLOT = 2 + MAX_RANK;
export const UNUSED = 0;
export const ALLOCATE = -1;

/** The kinds of vectors that there is a module for, the best first: native/build.mjs. */
const KINDS: Partial<Record<string, readonly string[]>> = { "linux-x64": ["avx512", "avx2"], "linux-arm64": ["neon"] };
/** The folder of the program: from src or dist, or from bench/dist/src. */
const ROOTS = ["../../../", "../../../../../"].map((up) => fileURLToPath(new URL(up, import.meta.url)));
const require = createRequire(import.meta.url);

/** Why there is no native module; "" = there is one. */
export let nativeModuleMissing = "";
/** The kind of vectors and of products, for people; "" = there is no module. */
export let nativeModuleKind = "";
export const nativeModule: NativeModule | null = load();

function load(): NativeModule | null {
  try {
    return open();
  } catch (error) {
    nativeModuleMissing = error instanceof Error ? error.message : String(error);
    return null;
  }
}

function open(): NativeModule {
  const wanted = process.env.FLYWHEEL_KERNELS;
  if (wanted === "graph") throw new Error("FLYWHEEL_KERNELS is graph");
  const platform = `${process.platform}-${process.arch}`;
  const made = KINDS[platform] ?? [];
  if (made.length === 0) throw new Error(`it is not made for ${platform}`);
  const kinds = wanted ? made.filter((kind) => kind === wanted) : made;
  if (kinds.length === 0) throw new Error(`FLYWHEEL_KERNELS is ${wanted}; here it can be graph, ${made.join(" or ")}`);
  for (const kind of kinds) {
    const module = require(fileOf(platform, kind)) as NativeModule;
    if (!module.runsHere()) continue;
    module.open(runtimeLibrary());
    nativeModuleKind = `${kind}, int8 by ${module.int8Path()}`;
    return module;
  }
  throw new Error(`this processor has no ${kinds.join(" or ")}`);
}

function fileOf(platform: string, kind: string): string {
  const files = ROOTS.map((root) => join(root, "native", "prebuilt", platform, `${kind}.node`));
  return files.find(existsSync) ?? files[0]!;
}

/** The library that onnx-runtime.ts loads too. */
function runtimeLibrary(): string {
  const carried = join(ROOTS[0]!, "runtime", "onnxruntime-node");
  const folder = existsSync(carried) ? carried : dirname(require.resolve("onnxruntime-node/package.json"));
  return join(folder, "bin", "napi-v6", process.platform, process.arch, "libonnxruntime.so.1");
}
