// A thread that tokenises long texts: a megabyte of spaces takes a second, and a regular expression or a normaliser cannot give
// way. The thread starts with the first long text and has a tokenizer of its own. Clients take turns.

import type { Worker } from "node:worker_threads";
import { FairQueue, type Turn } from "../../pacing/fair-queue.ts";
import { PromptError } from "../prompt-error.ts";
import type { EncodeOptions } from "../tokenizer-contract.ts";

export interface EncodeJob {
  text: string;
  options: EncodeOptions;
}

/** `ids` or what went wrong; for the start of the thread, neither. */
export type EncodeMessage = { ids: Int32Array } | { fault: string } | { ready: true };

interface Waiting extends EncodeJob {
  resolve(ids: number[]): void;
  reject(error: Error): void;
}

const WAITING_PER_CLIENT = 64;
/** Far more than any text takes that the server accepts, unless its tokenizer takes quadratic time. */
const TIME_LIMIT_MS = 20_000;
const START_LIMIT_MS = 60_000;

export class EncoderThread {
  readonly #start: () => Worker;
  readonly #queue = new FairQueue<Waiting>({ waitingPerOwner: WAITING_PER_CLIENT });
  #worker: Worker | null = null;
  #isReady = false;
  #running: { turn: Turn<Waiting>; from: number } | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `start`: starts a thread that runs `serveEncoder`. */
  constructor(start: () => Worker) {
    this.#start = start;
  }

  encode(text: string, options: EncodeOptions, client: string): Promise<number[]> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed || !this.#queue.add(client, { text, options, resolve, reject })) {
        reject(new PromptError("template_busy", null, "Too many texts are waiting to be tokenised: try again later."));
        return;
      }
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const closing = new PromptError("template_busy", null, "The service is shutting down.");
    for (const job of this.#queue.removeAll()) job.reject(closing);
    await this.#replace(closing);
  }

  #next(): void {
    if (this.#running || this.#isClosed) return;
    const turn = this.#queue.take();
    if (turn === undefined) {
      this.#worker?.unref();
      return;
    }
    this.#running = { turn, from: performance.now() };
    this.#worker ??= this.#started();
    this.#worker.ref();
    if (this.#isReady) this.#send(turn.item);
    else this.#limit(START_LIMIT_MS, new Error("the thread that tokenises did not start"));
  }

  #started(): Worker {
    const worker = this.#start();
    this.#isReady = false;
    worker.on("message", (message: EncodeMessage) => {
      if (worker === this.#worker) this.#receive(message);
    });
    const gone = (cause?: unknown): void => {
      if (worker === this.#worker) void this.#replace(new Error("the thread that tokenises ended", { cause }));
    };
    worker.on("error", gone).on("exit", () => gone());
    return worker;
  }

  #send({ text, options }: Waiting): void {
    const message = `A text of ${text.length} characters took longer than ${TIME_LIMIT_MS / 1000} s to tokenise: send a shorter one.`;
    this.#limit(TIME_LIMIT_MS, new PromptError("text_too_long", null, message));
    this.#worker?.postMessage({ text, options } satisfies EncodeJob);
  }

  #receive(message: EncodeMessage): void {
    if ("ready" in message) {
      this.#isReady = true;
      if (this.#running) this.#send(this.#running.turn.item);
      return;
    }
    const job = this.#finish();
    if ("ids" in message) job?.resolve(Array.from(message.ids));
    else job?.reject(new Error(message.fault));
    this.#next();
  }

  #limit(milliseconds: number, error: Error): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#replace(error), milliseconds);
  }

  #finish(): Waiting | null {
    clearTimeout(this.#timer);
    const running = this.#running;
    this.#running = null;
    running?.turn.end(performance.now() - running.from);
    return running?.turn.item ?? null;
  }

  /** Ends the thread and fails its job. The next job starts another one. */
  async #replace(reason: Error): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    this.#isReady = false;
    this.#finish()?.reject(reason);
    this.#next();
    await worker?.terminate();
  }
}
