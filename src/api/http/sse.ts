// Server-sent events on a raw response, with the reader's pace respected. `send` never waits: while the socket is
// full, `blocked` is true and the caller keeps its output back (merged) until `onDrain`. A reader that takes nothing
// for `stallTimeout` seconds is cut off.
import type { ServerResponse } from "node:http";

export const DONE = "data: [DONE]\n\n";

export interface EventStreamOptions {
  headers: Readonly<Record<string, string | number | string[] | undefined>>;
  /** Seconds. */
  stallTimeout: number;
  /** The socket takes more again. */
  onDrain: () => void;
}

export class EventStream {
  readonly #response: ServerResponse;
  readonly #stallTimeout: number;
  #blocked = false;
  #cutOff = false;
  #stall: NodeJS.Timeout | null = null;

  /** Sends the headers at once. */
  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response;
    this.#stallTimeout = options.stallTimeout;
    response.on("drain", () => {
      this.#blocked = false;
      this.#unwatchStall();
      options.onDrain();
    });
    response.on("close", () => this.#unwatchStall());
    response.writeHead(200, {
      ...options.headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  /** The connection was closed because its reader was too slow. */
  get cutOff(): boolean {
    return this.#cutOff;
  }

  /** `events`: complete `data: …` blocks. Nothing happens once the connection is gone. */
  send(events: string): void {
    if (events !== "" && !this.#response.destroyed && !this.#response.write(events)) {
      this.#blocked = true;
      this.#watchStall();
    }
  }

  /** The last events; the connection is kept for the client's next request. */
  end(events: string): void {
    if (!this.#response.destroyed) {
      this.#response.end(events);
      this.#watchStall();
    }
  }

  cut(): void {
    this.#cutOff = true;
    this.#response.destroy();
  }

  #watchStall(): void {
    this.#stall ??= setTimeout(() => this.cut(), this.#stallTimeout * 1000).unref();
  }

  #unwatchStall(): void {
    if (this.#stall !== null) {
      clearTimeout(this.#stall);
      this.#stall = null;
    }
  }
}
