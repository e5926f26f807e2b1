// Runs one emitted graph on the CPU with a fixed number of threads, through the native module where it runs and through
// ONNX Runtime's own binding elsewhere. Only this file and native/ call ONNX Runtime; others use its `Tensor` type. `run`
// blocks the calling JavaScript thread for the whole computation, so sessions live in worker threads and in the trainer's
// process. Inputs are read in place, outputs are fresh arrays.

import type { Graph } from "./graph.ts";
import { fused } from "./native/fuse.ts";
import { nativeModule } from "./native/native-module.ts";
import { NativeSession } from "./native/native-session.ts";
import { packWeights } from "./native/packed-weights.ts";
import { emitOnnx } from "./onnx.ts";
import { InferenceSession, Tensor } from "./onnx-runtime.ts";

export type Feeds = Record<string, Tensor>;
export type Outputs = Record<string, Tensor>;

export interface SessionOptions {
  /** Threads that share one operation, the calling thread included. */
  threads: number;
  /** Whether idle threads wait in a busy loop, for a short time (default: true). That is faster between small operations. */
  spinning?: boolean;
  /**
   * Whether the native module shares its operations among threads of its own, which start in less time than the runtime's. The
   * runtime's operations have one thread then, so this is for graphs without its products, and where no other session
   * computes at about the same time (default: false).
   */
  ownThreads?: boolean;
}

/** Whether graphs may use the operations of the native module (FLYWHEEL in graph.ts). */
export const hasKernels = nativeModule !== null;

/**
 * How long an idle thread waits in a busy loop before it sleeps. The runtime's own limit is tens of milliseconds, which would
 * keep all cores busy after every step. Operations of the native module are few and long: waking a thread for the next one costs
 * more than waiting for the slowest thread of this one.
 */
const SPIN_MICROSECONDS = hasKernels ? 200 : 20;

/** A session of either binding. */
interface BoundSession {
  readonly outputNames: readonly string[];
  keep(feeds: Feeds): void;
  run(feeds: Feeds, fetches: Record<string, Tensor | null>): Promise<Outputs>;
  release(): Promise<void>;
}

export class GraphSession {
  readonly #session: BoundSession;

  private constructor(session: BoundSession) {
    this.#session = session;
  }

  static async create(graph: Graph, options: SessionOptions): Promise<GraphSession> {
    return new GraphSession(await (hasKernels ? nativeSession(graph, options) : runtimeSession(graph, options)));
  }

  /** Gives inputs for all later runs, which read the same memory. */
  keep(feeds: Feeds): void {
    this.#session.keep(feeds);
  }

  /**
   * `wanted`: names of the outputs to return; default: all. `into`: tensors of the right shapes that some of them are
   * written to. Those are returned as well.
   */
  run(feeds: Feeds, wanted: readonly string[] = this.#session.outputNames, into: Outputs = {}): Promise<Outputs> {
    const fetches: Record<string, Tensor | null> = {};
    for (const name of wanted) fetches[name] = into[name] ?? null;
    return this.#session.run(feeds, fetches);
  }

  /** Frees the runtime's memory. */
  async close(): Promise<void> {
    await this.#session.release();
  }
}

async function nativeSession(graph: Graph, options: SessionOptions): Promise<BoundSession> {
  const rewritten = fused(graph);
  const packed = packWeights(nativeModule!, rewritten);
  const config = Object.entries(waitingOf(options)).map(([key, value]) => [`session.intra_op.${key}`, value] as const);
  return NativeSession.create(emitOnnx(rewritten, packed), {
    threads: options.threads,
    ownThreads: options.ownThreads ?? false,
    spinMicroseconds: spinOf(options),
    config: Object.fromEntries(config),
    packed: [...packed.values()],
  });
}

async function runtimeSession(graph: Graph, options: SessionOptions): Promise<BoundSession> {
  const model = emitOnnx(graph);
  const session = await InferenceSession.create(model.bytes, {
    executionProviders: ["cpu"],
    externalData: model.external,
    intraOpNumThreads: options.threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    enableMemPattern: false,
    logSeverityLevel: 3,
    extra: { session: { intra_op: waitingOf(options) } },
  });
  return new RuntimeSession(session);
}

/** A session of the runtime's own binding. */
class RuntimeSession implements BoundSession {
  readonly #session: InferenceSession;
  #kept: Feeds = {};

  constructor(session: InferenceSession) {
    this.#session = session;
  }

  get outputNames(): readonly string[] {
    return this.#session.outputNames;
  }

  keep(feeds: Feeds): void {
    this.#kept = { ...this.#kept, ...feeds };
  }

  run(feeds: Feeds, fetches: Record<string, Tensor | null>): Promise<Outputs> {
    return this.#session.run({ ...this.#kept, ...feeds }, fetches) as Promise<Outputs>;
  }

  release(): Promise<void> {
    return this.#session.release();
  }
}

function spinOf({ spinning = true }: SessionOptions): number {
  return spinning ? SPIN_MICROSECONDS : 0;
}

function waitingOf(options: SessionOptions): Record<string, string> {
  const spin = spinOf(options);
  return spin > 0 ? { spin_duration_us: String(spin) } : { allow_spinning: "0" };
}

/** Asks the system for large pages, on which long memory is read faster. Call it before the memory is written. */
export function useHugePages(memory: Float32Array | Uint16Array): void {
  nativeModule?.useHugePages(memory);
}

export function floats(data: Float32Array, shape: readonly number[]): Tensor {
  return new Tensor("float32", data, shape);
}

/** float16, by its bits. */
export function halves(data: Uint16Array, shape: readonly number[]): Tensor {
  return new Tensor("float16", data, shape);
}

export function int64s(data: BigInt64Array, shape: readonly number[]): Tensor {
  return new Tensor("int64", data, shape);
}

export function bytes(data: Uint8Array, shape: readonly number[]): Tensor {
  return new Tensor("uint8", data, shape);
}

export function bools(data: Uint8Array, shape: readonly number[]): Tensor {
  return new Tensor("bool", data, shape);
}
