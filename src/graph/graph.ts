// A traced computation: the list of ONNX nodes that the functions of ops.ts append to, with the shape and type of every
// value. onnx.ts emits a graph and grad.ts differentiates it. A dimension is a number, or a name if its size is known
// only at run time.

import { WeightMemory } from "./weight-memory.ts";

export type Dim = number | string;
export type DType = "float32" | "uint8" | "int8" | "int32" | "int64" | "bool" | "float16";
export type TypedData = Float32Array | Uint16Array | Uint8Array | Int8Array | Int32Array | BigInt64Array;
export type Attribute = number | string | readonly number[] | { float: number } | Graph;

export interface Value {
  readonly name: string;
  readonly shape: readonly Dim[];
  readonly dtype: DType;
  /** The graph it was made in. A subgraph may use values of the graphs around it. */
  readonly graph: Graph;
  /** null for inputs and initializers. */
  readonly node: Node | null;
}

export interface Node {
  readonly op: string;
  readonly domain: string;
  /** null = an optional input left out. */
  readonly inputs: readonly (Value | null)[];
  readonly outputs: readonly Value[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface Initializer {
  readonly value: Value;
  readonly data: TypedData;
  /** Whether Graph.constant made it, so that its name means nothing. */
  readonly constant: boolean;
}

/** Maps the gradient of a value to those of its inputs; null = none reaches the input. */
export type Pull = (g: Graph, dy: Value) => readonly (Value | null)[];

export const MICROSOFT = "com.microsoft";
/** Operations of the native module (native/runtime/operations.c). */
export const FLYWHEEL = "flywheel";

export class Graph {
  readonly nodes: Node[] = [];
  readonly inputs: Value[] = [];
  readonly outputs: Value[] = [];
  readonly initializers: Initializer[] = [];
  /** For the data of large initializers. */
  readonly memory: WeightMemory;
  /** Gradients defined by hand, by value. */
  readonly pulls = new Map<Value, { inputs: readonly Value[]; pull: Pull }>();
  readonly #constants = new Map<string, Value>();
  readonly #root: Graph;
  #counter = 0;

  constructor(parent: Graph | null = null) {
    this.#root = parent === null ? this : parent.#root;
    this.memory = parent === null ? new WeightMemory() : parent.memory;
  }

  input(name: string, shape: readonly Dim[], dtype: DType = "float32"): Value {
    const value: Value = { name, shape, dtype, graph: this, node: null };
    this.inputs.push(value);
    return value;
  }

  /** Declares a result under a public name. */
  output(name: string, value: Value): void {
    const [renamed] = this.add("Identity", [value], [{ shape: value.shape, dtype: value.dtype }], {}, "", [name]);
    this.outputs.push(renamed!);
  }

  /** Declares a result of a branch. Its name does not matter, so a value made here is used as it is, without a copy. */
  handOut(value: Value): void {
    const madeHere = value.graph === this && value.node !== null;
    if (madeHere && !this.outputs.includes(value)) this.outputs.push(value);
    else this.output(this.freshName("result"), value);
  }

  /** Weights. They are part of the model, so that the runtime can pack them. The outermost graph holds them. */
  initializer(name: string, shape: readonly number[], data: TypedData): Value {
    return this.#hold(name, shape, data, false);
  }

  /** A small constant, shared between equal uses. */
  constant(data: TypedData, shape: readonly number[] = [data.length]): Value {
    const key = `${dtypeOf(data)}[${shape}]${Array.from(data as Iterable<number | bigint>).join()}`;
    const known = this.#root.#constants.get(key);
    if (known) return known;
    const value = this.#hold(this.freshName("const"), shape, data, true);
    this.#root.#constants.set(key, value);
    return value;
  }

  /** Appends a node. `outputs`: the shape and type of each result. */
  add(
    op: string,
    inputs: readonly (Value | null)[],
    outputs: readonly { shape: readonly Dim[]; dtype?: DType }[],
    attributes: Readonly<Record<string, Attribute>> = {},
    domain = "",
    names: readonly string[] = [],
  ): Value[] {
    const values: Value[] = [];
    const node: Node = { op, domain, inputs, outputs: values, attributes };
    for (const [i, { shape, dtype = "float32" }] of outputs.entries()) {
      values.push({ name: names[i] ?? this.freshName(op), shape, dtype, graph: this, node });
    }
    this.nodes.push(node);
    return values;
  }

  /** Defines how a gradient passes from `output` to `inputs`, skipping the nodes between them. */
  defineGradient(output: Value, inputs: readonly Value[], pull: Pull): void {
    this.pulls.set(output, { inputs, pull });
  }

  /** A graph for one branch of a condition. It sees every value made here so far. */
  child(): Graph {
    return new Graph(this);
  }

  freshName(hint: string): string {
    this.#root.#counter += 1;
    return `${hint}_${this.#root.#counter}`;
  }

  #hold(name: string, shape: readonly number[], data: TypedData, constant: boolean): Value {
    const value: Value = { name, shape, dtype: dtypeOf(data), graph: this.#root, node: null };
    this.#root.initializers.push({ value, data, constant });
    return value;
  }
}

function dtypeOf(data: TypedData): DType {
  if (data instanceof Float32Array) return "float32";
  if (data instanceof Uint8Array) return "uint8";
  if (data instanceof Int8Array) return "int8";
  if (data instanceof Int32Array) return "int32";
  return "int64";
}
