// Looks at constraints for people, in a thread of its own (inspect-worker.ts). The thread starts with the first question and
// takes one at a time; clients take turns. One that takes too long ends the thread; the next question starts another.

import { Worker } from "node:worker_threads";
import { FairQueue } from "../pacing/fair-queue.ts";
import { compiledEntry } from "../system/package.ts";
import { ConstraintError } from "./constraint.ts";
import { QueueFullError } from "./grammar-service.ts";
import type { InspectJob, InspectResult } from "./inspect-worker.ts";
import type { TokenVocabulary } from "./match/token-vocabulary.ts";

/** The first question waits for the vocabulary's trie: 2 s at 150,000 tokens. */
const TIMEOUT_MS = 30_000;

/** Questions of one client that may wait. */
const MAX_WAITING = 100;

export type Inspection = Extract<InspectResult, { positions: unknown }>;

export class GrammarInspector {
  readonly #vocabulary: () => TokenVocabulary;
  readonly #queue = new FairQueue<() => Promise<void>>({ waitingPerOwner: MAX_WAITING });
  #busy = false;
  #worker: Worker | null = null;

  constructor(vocabulary: () => TokenVocabulary) {
    this.#vocabulary = vocabulary;
  }

  /**
   * Rejects with ConstraintError if the constraint cannot be followed and with QueueFullError if `client` has too many
   * questions waiting; any other rejection is an internal fault. null when `stopped` aborts before its turn.
   */
  inspect(job: InspectJob, client: string, stopped: AbortSignal): Promise<Inspection | null> {
    return new Promise((resolve, reject) => {
      const run = async (): Promise<void> => {
        if (stopped.aborted) return resolve(null);
        try {
          resolve(inspectionOf(await this.#ask(job)));
        } catch (error) {
          reject(error);
        }
      };
      if (!this.#queue.add(client, run)) {
        reject(new QueueFullError(`${MAX_WAITING} constraints of this token already wait to be looked at.`));
      }
      void this.#next();
    });
  }

  async #next(): Promise<void> {
    if (this.#busy) return;
    const turn = this.#queue.take();
    if (turn === undefined) return;
    this.#busy = true;
    const from = performance.now();
    await turn.item();
    turn.end(performance.now() - from);
    this.#busy = false;
    void this.#next();
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #ask(job: InspectJob): Promise<InspectResult> {
    const worker = this.#start();
    return new Promise((resolve) => {
      const settle = (result: InspectResult, discard: boolean): void => {
        clearTimeout(timer);
        worker.off("message", onMessage).off("error", onError).off("exit", onExit).unref();
        if (discard) void this.close();
        resolve(result);
      };
      const onMessage = (result: InspectResult): void => settle(result, false);
      const onError = (error: Error): void => settle({ fault: error.stack ?? error.message }, true);
      const onExit = (): void => settle({ fault: "the thread ended" }, true);
      const late = (): void => settle({ refused: "the constraint is too complex to look at" }, true);
      const timer = setTimeout(late, TIMEOUT_MS);
      worker.on("message", onMessage).on("error", onError).on("exit", onExit).ref();
      worker.postMessage(job);
    });
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(compiledEntry(import.meta.url, "./inspect-worker.ts"), {
      workerData: this.#vocabulary(),
    });
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = null;
    };
    worker.on("error", forget).on("exit", forget);
    this.#worker = worker;
    return worker;
  }
}

/** Throws what went wrong. */
function inspectionOf(result: InspectResult): Inspection {
  if ("positions" in result) return result;
  if ("refused" in result) throw new ConstraintError(result.refused, "structured_outputs");
  throw new Error(`inspecting a constraint failed: ${result.fault}`);
}
