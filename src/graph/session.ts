// Runs one emitted graph on the CPU with a fixed number of threads. Only this file calls onnxruntime-node; others use
// its `Tensor` type. `run` blocks the calling JavaScript thread for the whole computation, so sessions live in worker
// threads and in the trainer's process. Inputs are read in place, outputs are fresh arrays.

import { InferenceSession, Tensor } from "onnxruntime-node";
import type { Graph } from "./graph.ts";
import { emitOnnx } from "./onnx.ts";

export type Feeds = Record<string, Tensor>;
export type Outputs = Record<string, Tensor>;

export interface SessionOptions {
  /** Threads that share one operation, the calling thread included. */
  threads: number;
  /** Whether idle threads wait in a busy loop (default: true). That is faster between small operations, but takes CPU time. */
  spinning?: boolean;
}

export class GraphSession {
  readonly #session: InferenceSession;

  private constructor(session: InferenceSession) {
    this.#session = session;
  }

  static async create(graph: Graph, options: SessionOptions): Promise<GraphSession> {
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
      ...(options.spinning === false ? { extra: { session: { intra_op: { allow_spinning: "0" } } } } : {}),
    });
    return new GraphSession(session);
  }

  /**
   * `wanted`: names of the outputs to return; default: all. `into`: tensors of the right shapes that some of them are
   * written to. Those are returned as well, because the binding copies every output.
   */
  run(feeds: Feeds, wanted: readonly string[] = this.#session.outputNames, into: Outputs = {}): Promise<Outputs> {
    const fetches = Object.fromEntries(wanted.map((name) => [name, into[name] ?? null]));
    return this.#session.run(feeds, fetches) as Promise<Outputs>;
  }

  /** Frees the runtime's memory. */
  async close(): Promise<void> {
    await this.#session.release();
  }
}

export function floats(data: Float32Array, shape: readonly number[]): Tensor {
  return new Tensor("float32", data, shape);
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
