// Runs one emitted graph by the native module, as session.ts does by onnxruntime-node, with less work around each run.

import type { TypedData } from "../graph.ts";
import type { OnnxModel } from "../onnx.ts";
import { Tensor } from "../onnx-runtime.ts";
import {
  ALLOCATE,
  LAYOUT_SLOT,
  MAX_RANK,
  type NativeModule,
  nativeModule,
  nativeModuleMissing,
  type SessionHandle,
  UNUSED,
} from "./native-module.ts";

type Tensors = Record<string, Tensor>;

export interface NativeSessionOptions {
  /** Threads that share one operation, the calling thread included. */
  threads: number;
  /** Whether the module's own threads share its operations. The runtime's operations have one thread then. */
  ownThreads?: boolean;
  /** How long own threads wait in a busy loop before they sleep. */
  spinMicroseconds?: number;
  /** Settings of the runtime, such as "session.intra_op.allow_spinning". */
  config?: Readonly<Record<string, string>>;
  /** Packed weights that the graph names. They are released with the session, or if there will be none. */
  packed?: readonly number[];
}

/** Tensor types that the module knows: numbers as in ONNX files, and the arrays that hold them. */
const TYPES = [
  { name: "float32", code: 1, array: Float32Array },
  { name: "uint8", code: 2, array: Uint8Array },
  { name: "int8", code: 3, array: Int8Array },
  { name: "int32", code: 6, array: Int32Array },
  { name: "int64", code: 7, array: BigInt64Array },
  { name: "bool", code: 9, array: Uint8Array },
  { name: "float16", code: 10, array: Uint16Array },
] as const;
const CODES: Readonly<Record<string, number>> = Object.fromEntries(TYPES.map(({ name, code }) => [name, code]));
const TYPE_OF_CODE = new Map<number, (typeof TYPES)[number]>(TYPES.map((type) => [type.code, type]));

export class NativeSession {
  readonly outputNames: readonly string[];
  readonly #module: NativeModule;
  readonly #handle: SessionHandle;
  #packed: readonly number[];
  /** The places of inputs and outputs in #layout and #arrays. Inputs that are kept are not among them. */
  readonly #inputs: Map<string, number>;
  readonly #outputs: ReadonlyMap<string, number>;
  readonly #layout: Float64Array;
  readonly #arrays: (TypedData | ArrayBuffer | null)[];
  /** Inputs of all runs, so that their memory lives as long as the session. */
  readonly #kept: Tensor[] = [];

  private constructor(module: NativeModule, handle: SessionHandle, packed: readonly number[]) {
    const inputNames = module.names(handle, false);
    this.outputNames = module.names(handle, true);
    this.#module = module;
    this.#handle = handle;
    this.#packed = packed;
    this.#inputs = new Map(inputNames.map((name, i) => [name, i]));
    this.#outputs = new Map(this.outputNames.map((name, i) => [name, inputNames.length + i]));
    const places = inputNames.length + this.outputNames.length;
    this.#layout = new Float64Array(places * LAYOUT_SLOT);
    this.#arrays = new Array<null>(places).fill(null);
  }

  static async create(model: OnnxModel, options: NativeSessionOptions): Promise<NativeSession> {
    const { threads, ownThreads = false, spinMicroseconds = 0, config = {}, packed = [] } = options;
    if (!nativeModule) throw new Error(`There is no native module: ${nativeModuleMissing}.`);
    try {
      const handle = nativeModule.createSession(
        model.bytes,
        threads,
        ownThreads,
        spinMicroseconds,
        Object.entries(config).flat(),
        model.external.map(({ path }) => path),
        model.external.map(({ data }) => data),
      );
      return new NativeSession(nativeModule, handle, packed);
    } catch (error) {
      for (const weights of packed) nativeModule.releaseWeights(weights);
      throw error;
    }
  }

  /** Gives inputs for all later runs, which read the same memory. */
  keep(feeds: Tensors): void {
    this.#layout.fill(UNUSED);
    try {
      for (const name in feeds) this.#give(placeOf(this.#inputs, name), feeds[name]!);
      this.#module.keep(this.#handle, this.#layout, this.#arrays as TypedData[]);
      this.#kept.push(...Object.values(feeds));
      for (const name in feeds) this.#inputs.delete(name);
    } finally {
      this.#arrays.fill(null);
    }
  }

  /** `fetches`: the outputs to return, and where some of them are written to. Those tensors are returned themselves. */
  async run(feeds: Tensors, fetches: Readonly<Record<string, Tensor | null>>): Promise<Tensors> {
    this.#layout.fill(UNUSED);
    try {
      for (const name in feeds) this.#give(placeOf(this.#inputs, name), feeds[name]!);
      for (const [name, place] of this.#inputs) {
        if (this.#arrays[place] === null) throw new Error(`"${name}" is missing.`);
      }
      for (const name in fetches) {
        const place = placeOf(this.#outputs, name);
        const into = fetches[name];
        if (into) this.#give(place, into);
        else this.#layout[place * LAYOUT_SLOT] = ALLOCATE;
      }
      this.#module.run(this.#handle, this.#layout, this.#arrays);
      const outputs: Tensors = {};
      for (const name in fetches) outputs[name] = fetches[name] ?? this.#take(this.#outputs.get(name)!);
      return outputs;
    } finally {
      this.#arrays.fill(null);
    }
  }

  /** Frees the runtime's memory. */
  async release(): Promise<void> {
    this.#module.release(this.#handle);
    for (const weights of this.#packed) this.#module.releaseWeights(weights);
    this.#packed = [];
  }

  #give(place: number, { type, dims, data }: Tensor): void {
    const code = CODES[type];
    if (code === undefined) throw new Error(`Tensors of type ${type} are not supported.`);
    if (dims.length > MAX_RANK) throw new Error(`A tensor has more than ${MAX_RANK} dimensions.`);
    const slot = place * LAYOUT_SLOT;
    this.#layout[slot] = code;
    this.#layout[slot + 1] = dims.length;
    for (let i = 0; i < dims.length; i++) this.#layout[slot + 2 + i] = dims[i]!;
    // Newer versions of Node give it an array type of its own, which the module does not know.
    const asBits = type === "float16" && !(data instanceof Uint16Array);
    this.#arrays[place] = asBits ? bitsOf(data as unknown as Uint16Array) : (data as TypedData);
  }

  #take(place: number): Tensor {
    const slot = place * LAYOUT_SLOT;
    const { name, array } = TYPE_OF_CODE.get(this.#layout[slot]!)!;
    const dims: number[] = [];
    for (let i = 0; i < this.#layout[slot + 1]!; i++) dims.push(this.#layout[slot + 2 + i]!);
    return new Tensor(name, new array(this.#arrays[place] as ArrayBuffer), dims);
  }
}

function bitsOf({ buffer, byteOffset, length }: Uint16Array): Uint16Array {
  return new Uint16Array(buffer, byteOffset, length);
}

function placeOf(places: ReadonlyMap<string, number>, name: string): number {
  const place = places.get(name);
  if (place === undefined) throw new Error(`The graph has no "${name}".`);
  return place;
}
